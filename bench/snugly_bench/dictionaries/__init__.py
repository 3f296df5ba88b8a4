"""What dictionaries that the server has learned by itself save and cost, for values that it has not learned from."""
