#!/usr/bin/env python3
"""PyTorch's side of a training step of a Llama and of ResNet-18, with the shapes, optimizer and data of
configs/examples/bench_CONFIG.txtpb.

usage: torch_models.py CONFIG(llama10m|resnet18) MODE(eager|bf16|compile|compile-bf16) [THREADS]

Prints one line of JSON with median_ms and tokens_per_s (for a classifier an image is a token)."""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

STEPS = 12


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        inner = width // heads * kv_heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(width, out, bias=False) for out in (width, inner, inner, width))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cosine, sine):
        rows, length, width = x.shape

        def heads(y, count):
            return y.view(rows, length, count, -1).transpose(1, 2)

        def rotate(y):
            first, second = y.chunk(2, -1)
            return y * cosine + torch.cat([-second, first], -1) * sine

        y = self.norm_1(x)
        q, k = rotate(heads(self.q(y), self.heads)), rotate(heads(self.k(y), self.kv_heads))
        v = heads(self.v(y), self.kv_heads)
        mixed = functional.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True,
                                                        enable_gqa=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(rows, length, width))
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, vocabulary, length, layers, heads, kv_heads, width, hidden):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        depth = width // heads
        angles = torch.outer(torch.arange(length), 10000 ** (-torch.arange(0, depth, 2) / depth)).repeat(1, 2)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class BasicBlock(nn.Module):
    def __init__(self, inner, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.down = None
        if stride != 1 or inner != out:
            self.down = nn.Sequential(nn.Conv2d(inner, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.down is None else self.down(x)))


class Resnet18(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        blocks, inner = [], 64
        for stage, out in enumerate((64, 128, 256, 512)):
            for i in range(2):
                blocks.append(BasicBlock(inner, out, 2 if stage > 0 and i == 0 else 1))
                inner = out
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, classes)

    def forward(self, images, targets):
        x = self.blocks(functional.relu(self.bn1(self.conv1(images))))
        return functional.cross_entropy(self.fc(x.mean((2, 3))), targets)


def llama10m():
    model = Llama(256, 256, 6, 6, 3, 384, 1152)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    return model, optimizer, 1.0, 8 * 256, lambda: (torch.randint(256, (8, 256)), torch.randint(256, (8, 256)))


def resnet18():
    model = Resnet18(10).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, foreach=True)
    def batch():
        images = torch.randn(32, 3, 32, 32).to(memory_format=torch.channels_last)
        return images, torch.randint(10, (32,))
    return model, optimizer, None, 32, batch


def main():
    name, mode, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, optimizer, clip, tokens, batch = {"llama10m": llama10m, "resnet18": resnet18}[name]()
    forward = torch.compile(model) if "compile" in mode else model

    def step():
        inputs, targets = batch()
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in mode):
            loss = forward(inputs, targets)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(3):
        step()
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    median = sorted(times)[len(times) // 2]
    print(json.dumps({"peer": "pytorch " + torch.__version__, "config": name, "mode": mode, "threads": threads,
                      "median_ms": round(median * 1e3, 2), "tokens_per_s": round(tokens / median, 1)}))


if __name__ == "__main__":
    main()
