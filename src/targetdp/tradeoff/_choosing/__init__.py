"""Settings held against each other: what is recommended, the options, what attackers reach, who bears it."""
