"""The prompts, a file `<name>.<version>.md` each; read by `turnfold.application.prompts`."""
