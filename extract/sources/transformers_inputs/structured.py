"""Inputs that are neither plain text nor plain pixels: regions, trajectories, tables, byte arrays, proteins."""

from __future__ import annotations

from typing import Any

import torch

from extract.sources.transformers_inputs.facts import LENGTH, Facts
from extract.sources.transformers_inputs.text import boxes
from extract.sources.transformers_inputs.vision import image_size, pixels


def regions(facts: Facts) -> dict[str, Any]:
    """LXMERT: text, and ten image regions with their boxes in 0-1."""
    size = facts.config.visual_feat_dim
    return {"input_ids": facts.ids(), "visual_feats": torch.randn(1, 10, size), "visual_pos": torch.rand(1, 10, 4)}


def embedded_regions(facts: Facts) -> dict[str, Any]:
    """VisualBERT: text, and ten regions already embedded; region classifiers want the words that name each region."""
    ids = facts.ids(batch=2)[None] if facts.cls.endswith("ForMultipleChoice") else facts.ids()
    lead = ids.shape[:-1]
    given: dict[str, Any] = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "visual_embeds": torch.randn(*lead, 10, facts.config.visual_embedding_dim),
        "visual_attention_mask": torch.ones(*lead, 10),
        "visual_token_type_ids": torch.ones(*lead, 10, dtype=torch.long),
    }
    if "region_to_phrase_position" in facts.accepts:
        given["region_to_phrase_position"] = torch.zeros(1, LENGTH + 10, dtype=torch.long)
    return given


def trajectory(facts: Facts) -> dict[str, Any]:
    """Decision Transformer: twenty steps of states, actions, rewards and returns to go."""
    config = facts.config
    return {
        "states": torch.randn(1, 20, config.state_dim),
        "actions": torch.randn(1, 20, config.act_dim),
        "rewards": torch.randn(1, 20, 1),
        "returns_to_go": torch.randn(1, 20, 1),
        "timesteps": torch.arange(20)[None],
        "attention_mask": torch.ones(1, 20, dtype=torch.long),
    }


def table(facts: Facts) -> dict[str, Any]:
    """TAPAS: seven token types a token (segment, column, row, previous label, column rank, inverse rank, relation)."""
    ids = facts.ids()
    kinds = torch.zeros(1, LENGTH, 7, dtype=torch.long)
    kinds[:, LENGTH // 2 :, 0] = 1
    kinds[:, LENGTH // 2 :, 1:3] = 1
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": kinds}


def document(facts: Facts) -> dict[str, Any]:
    """A page: words, their boxes on a 0-1000 grid, and the page's image where the model reads one."""
    given: dict[str, Any] = {"input_ids": facts.ids(), "bbox": boxes(facts)}
    if "pixel_values" in facts.accepts and facts.kind != "udop":
        given["pixel_values"] = pixels(facts, 1)
    if facts.kind == "bros":
        given["bbox"] = torch.rand(1, LENGTH, facts.config.dim_bbox)
    if facts.kind == "udop":
        given["bbox"] = boxes(facts) / 1000
    if "decoder_input_ids" in facts.accepts:
        given["decoder_input_ids"] = torch.randint(3, 400, (1, 8))
    return given


def marked_up(facts: Facts) -> dict[str, Any]:
    """MarkupLM: text and, for every token, the tags and subscripts on its path in the page tree."""
    ids = facts.ids()
    depth = facts.config.max_depth
    return {
        "input_ids": ids,
        "xpath_tags_seq": torch.zeros(1, LENGTH, depth, dtype=torch.long),
        "xpath_subs_seq": torch.zeros(1, LENGTH, depth, dtype=torch.long),
    }


def entities(facts: Facts) -> dict[str, Any]:
    """LUKE: text and two entities, each with the positions of its mention (padded by -1 to 30)."""
    choice = (2,) if facts.cls.endswith("ForMultipleChoice") else ()
    lead = (1, *choice)
    ids = facts.ids(batch=2)[None] if choice else facts.ids()
    places = torch.full(
        (*lead, 2, facts.config.max_mention_length if hasattr(facts.config, "max_mention_length") else 30), -1
    )
    places[..., :2] = torch.tensor([1, 2])
    given = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "entity_ids": torch.ones(*lead, 2, dtype=torch.long),
        "entity_attention_mask": torch.ones(*lead, 2, dtype=torch.long),
        "entity_position_ids": places,
    }
    if "entity_start_positions" in facts.accepts:
        given["entity_start_positions"] = torch.ones(*lead, 2, dtype=torch.long)
        given["entity_end_positions"] = torch.full((*lead, 2), 2)
    return given


def latent_array(facts: Facts) -> dict[str, Any]:
    """Perceiver: what its preprocessor reads; without one, an array (1, length, width)."""
    if facts.cls == "PerceiverModel":
        return {"inputs": torch.randn(1, 64, facts.config.d_model)}
    if facts.cls == "PerceiverForOpticalFlow":
        return {"inputs": torch.randn(1, 2, 27, *facts.config.train_size)}
    if "ImageClassification" in facts.cls:
        side = facts.config.image_size
        return {"inputs": torch.rand(1, 3, side, side) if "Learned" not in facts.cls else torch.rand(1, 3, 224, 224)}
    return {"inputs": torch.randint(6, 262, (1, facts.config.max_position_embeddings))}


def protein(facts: Facts) -> dict[str, Any]:
    """Evolla: a question about a protein, given by its residues."""
    residues = torch.randint(4, 24, (1, LENGTH))
    ids = facts.ids()
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "protein_input_ids": residues,
        "protein_attention_mask": torch.ones_like(residues),
    }


def querying(facts: Facts) -> dict[str, Any]:
    """Q-Former alone: query embeddings that attend to image features."""
    config = facts.config
    return {
        "query_embeds": torch.randn(1, 32, config.hidden_size),
        "encoder_hidden_states": torch.randn(1, 50, config.encoder_hidden_size),
    }


def decision(facts: Facts) -> dict[str, Any]:
    """JEV: a question with marked options."""
    return {
        "input_ids": facts.ids(),
        "marks": torch.tensor([[4, 10, 16]]),
        "num_options": torch.tensor([3]),
        "question_type_ids": torch.tensor([0]),
    }


def draft(facts: Facts) -> dict[str, Any]:
    """A drafting model: noise for the next block, and the states of the accepted tokens."""
    config = facts.config
    width = config.hidden_size
    return {
        "noise_embeds": torch.randn(1, config.block_size, width),
        "context_hidden_states": torch.randn(1, 8, width * len(config.target_layer_ids)),
    }


def large_side(facts: Facts) -> dict[str, Any]:
    """Depth Pro: an image four patches a side, the smallest that its pyramid of scales takes."""
    return {"pixel_values": torch.rand(1, 3, 1536, 1536)}


def windowed(facts: Facts) -> dict[str, Any]:
    """RF-DETR: a side that is a whole number of windows of patches."""
    side = image_size(facts)[0]
    backbone = facts.part("backbone_config") or facts.config
    unit = (facts.get("patch_size", config=backbone) or 14) * (facts.get("num_windows", config=backbone) or 4)
    return {"pixel_values": torch.rand(1, 3, max(side // unit, 1) * unit, max(side // unit, 1) * unit)}
