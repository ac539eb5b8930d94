"""`make demo`: a tour through the whole of targetdp on invented people."""
