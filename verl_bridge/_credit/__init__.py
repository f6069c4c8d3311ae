"""Credit for the turns of an episode: rewards by turn, advantages and estimators."""
