"""Models that predict an outcome: our own, and estimators of scikit-learn and LightGBM."""
