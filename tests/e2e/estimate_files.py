# SPDX-License-Identifier: MIT
"""Writes the headers of models' files, with holes in place of the weights.

estimate_files.py CONFIG DIRECTORY: of a Llama-like config.json, a GGUF file in F16 (model.gguf), a file in
safetensors (model.safetensors) and an index (model.safetensors.index.json).
"""
import json
import os
import struct
import sys

config = json.load(open(sys.argv[1]))
directory = sys.argv[2]
hidden, ffn, vocab = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
layers, heads, kv_heads = (
    config[key] for key in ("num_hidden_layers", "num_attention_heads", "num_key_value_heads"))
kv = hidden // heads * kv_heads

# name of safetensors, name of GGUF, sides
tensors = [("model.embed_tokens.weight", "token_embd.weight", (vocab, hidden)),
           ("lm_head.weight", "output.weight", (vocab, hidden)),
           ("model.norm.weight", "output_norm.weight", (hidden,))]
for layer in range(layers):
    for name, short, sides in (
            ("self_attn.q_proj", "attn_q", (hidden, hidden)), ("self_attn.k_proj", "attn_k", (kv, hidden)),
            ("self_attn.v_proj", "attn_v", (kv, hidden)), ("self_attn.o_proj", "attn_output", (hidden, hidden)),
            ("mlp.gate_proj", "ffn_gate", (ffn, hidden)), ("mlp.up_proj", "ffn_up", (ffn, hidden)),
            ("mlp.down_proj", "ffn_down", (hidden, ffn)), ("input_layernorm", "attn_norm", (hidden,)),
            ("post_attention_layernorm", "ffn_norm", (hidden,))):
        tensors.append((f"model.layers.{layer}.{name}.weight", f"blk.{layer}.{short}.weight", sides))


def size(sides):
    product = 2
    for side in sides:
        product *= side
    return product


total = sum(size(sides) for _, _, sides in tensors)


def write(name, header, data):
    with open(os.path.join(directory, name), "wb") as file:
        file.write(header)
        file.truncate(len(header) + data)


def text(string):
    return struct.pack("<Q", len(string)) + string.encode()


keys = {"block_count": layers, "context_length": config["max_position_embeddings"], "embedding_length": hidden,
        "feed_forward_length": ffn, "attention.head_count": heads, "attention.head_count_kv": kv_heads,
        "vocab_size": vocab}
gguf = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys) + 1)
gguf += text("general.architecture") + struct.pack("<I", 8) + text("llama")
for key, value in keys.items():
    gguf += text("llama." + key) + struct.pack("<II", 4, value)
at = 0
for _, name, sides in tensors:
    gguf += text(name) + struct.pack("<I", len(sides))
    gguf += b"".join(struct.pack("<Q", side) for side in reversed(sides)) + struct.pack("<IQ", 1, at)
    at += size(sides)
write("model.gguf", gguf, total)

header, at = {"__metadata__": {"format": "pt"}}, 0
for name, _, sides in tensors:
    header[name] = {"dtype": "BF16", "shape": sides, "data_offsets": [at, at + size(sides)]}
    at += size(sides)
header = json.dumps(header).encode()
write("model.safetensors", struct.pack("<Q", len(header)) + header, total)
write("model-00001-of-00004.safetensors", struct.pack("<Q", len(header)) + header, total)
index = {"metadata": {"total_size": total}, "weight_map": {name: "model.safetensors" for name, _, _ in tensors}}
write("model.safetensors.index.json", json.dumps(index).encode(), 0)
