"""Time series: past values, and for the sampling transformers the time features beside them."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs.facts import Facts


def inputs(facts: Facts) -> dict[str, Any]:
    """(batch, past length, channels); the Informer family wants lags and time features as well."""
    config = facts.config
    if "past_time_features" in facts.required:
        return _lagged(facts)
    if facts.kind.startswith("timesfm"):
        length = 512  # whole patches; the full context only repeats them
        values = torch.randn(2, length)
        if "past_values_padding" in facts.required:
            return {
                "past_values": values,
                "past_values_padding": torch.zeros(2, length),
                "freq": torch.zeros(2, 1).long(),
            }
        whole = facts.cls.endswith("Model")
        if "forecast_context_len" in facts.accepts:  # else the model pads to its full context
            return {"past_values": [values[0], values[1]], "forecast_context_len": length}
        return {"past_values": values if whole else [values[0], values[1]]}
    channels = facts.get("num_input_channels", default=1)
    return {"past_values": torch.randn(2, facts.get("context_length", default=32), channels)} if config else {}


def _lagged(facts: Facts) -> dict[str, Any]:
    config = facts.config
    size = config.input_size
    past = config.context_length + max(config.lags_sequence)
    future = config.prediction_length

    def values(length: int) -> torch.Tensor:
        return torch.randn(2, length) if size == 1 else torch.randn(2, length, size)

    given: dict[str, Any] = {
        "past_values": values(past),
        "past_time_features": torch.randn(2, past, config.num_time_features),
        "past_observed_mask": torch.ones_like(values(past)),
        "future_values": values(future),
        "future_time_features": torch.randn(2, future, config.num_time_features),
    }
    if config.num_static_categorical_features:
        given["static_categorical_features"] = torch.zeros(2, config.num_static_categorical_features).long()
    if config.num_static_real_features:
        given["static_real_features"] = torch.randn(2, config.num_static_real_features)
    return given
