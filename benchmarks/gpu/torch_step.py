#!/usr/bin/env python3
"""PyTorch's side of a training step of GPT-2: for each line "eager" or "compile" on standard input,
times some steps and prints one line of JSON. The process keeps running, so that it can alternate with
Lockstep without recompiling."""

import argparse
import contextlib
import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Returns the mean loss; the output layer's weight is the embedding's."""

    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers if residual else 1))

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=["F32", "BF16_MIXED", "F16_MIXED"], default="F32")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    return parser.parse_args()


def main():
    options = arguments()
    torch.manual_seed(1)
    on_gpu = options.device.startswith("cuda")
    model = Gpt2(options.vocabulary, options.context, options.layers, options.heads,
                 options.width).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999),
                                  weight_decay=0.01, fused=True)
    scaler = torch.amp.GradScaler(options.device.split(":")[0],
                                  enabled=options.precision == "F16_MIXED")
    dtype = {"BF16_MIXED": torch.bfloat16, "F16_MIXED": torch.float16}.get(options.precision)
    lower = (torch.autocast(options.device.split(":")[0], dtype=dtype) if dtype
             else contextlib.nullcontext())
    shape = (options.batch, options.context + 1)

    def step(forward):
        batch = torch.randint(options.vocabulary, shape, device=options.device)
        with lower:
            loss = forward(batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    modes = {"eager": model, "compile": torch.compile(model)}
    for line in sys.stdin:
        forward = modes[line.strip()]
        for _ in range(3):
            step(forward)
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        for _ in range(options.steps):
            loss = step(forward)
        # Includes queued work; synchronising after every step would not be PyTorch's best.
        loss = loss.item()
        if on_gpu:
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / options.steps
        result = {"mode": line.strip(), "torch": torch.__version__, "mean_ms": seconds * 1e3,
                  "tokens_per_s": options.batch * options.context / seconds, "loss": loss}
        if on_gpu:
            result["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
            torch.cuda.empty_cache()  # for Lockstep's turn
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
