"""`targetdp learn` and `targetdp allocate`: what an official who codes runs."""
