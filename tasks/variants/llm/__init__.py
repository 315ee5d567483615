"""Language models as providers: asking them, reading their answers, and remembering what was bought."""
