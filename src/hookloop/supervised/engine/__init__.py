"""What there is to say about a model and its data beyond loss and accuracy: pure functions, which hooks make use of.

::

    from hookloop.supervised.engine.alerts import find_alerts         # what is suddenly worse
    from hookloop.supervised.engine.confidence import confidence_of   # how sure a model is, and whether rightly
    from hookloop.supervised.engine.drift import drift_between        # how much two sets of data differ

``alerts`` needs the standard library alone.
"""
