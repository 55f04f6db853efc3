#!/usr/bin/env python3
"""PyTorch's side of `lockstep bench kernels`, `matmul` and `calls`: the same calls on the same sizes,
timed the same way; prints lines of JSON with the same names."""

import argparse
import json
import time

import torch
from torch.nn import functional

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
WIDTH = 1024


def wait(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def call_seconds(options, call):
    """As launcher/bench/call_time.h has it."""

    def take(calls):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait(options.device)
        return time.perf_counter() - start

    take(1)
    once = take(1)
    calls = min(max(int(options.seconds / 3 / once), 1), 1000)
    return min([once] + [take(calls) / calls for _ in range(3)])


def passes(options, name, dtype):
    """Operators, their calls and the bytes that each must move at least."""
    here = {"dtype": dtype, "device": options.device}
    rows = max(options.elements // WIDTH, 1)
    x, y = torch.randn(rows, WIDTH, **here), torch.randn(rows, WIDTH, **here)
    weight = torch.ones(WIDTH, **here)
    one = x.nbytes
    transposed = y.view(WIDTH, rows).t()
    indices = torch.randint(rows, (rows,), device=options.device)
    targets = torch.randint(WIDTH, (rows,), device=options.device)
    _, mean, rstd = torch.native_layer_norm(x, [WIDTH], weight, weight, 1e-5)
    aten = torch.ops.aten
    yield "copy", lambda: y.copy_(x), 2 * one
    yield "copy of a transpose", lambda: x.copy_(transposed), 2 * one
    yield "add", lambda: x + y, 3 * one
    yield "add to rows", lambda: x + weight, 2 * one
    yield "gelu", lambda: functional.gelu(x, approximate="tanh"), 2 * one
    yield "gelu_backward", lambda: aten.gelu_backward(x, y, approximate="tanh"), 3 * one
    yield "dropout", lambda: torch.dropout(x, 0.1, True), 2 * one
    yield "sum", lambda: x.sum(), one
    yield "sum over columns", lambda: x.sum(0), one
    yield "softmax", lambda: x.softmax(-1), 2 * one
    yield "softmax_backward", lambda: aten._softmax_backward_data(x, y, -1, dtype), 3 * one
    yield "layer_norm", lambda: functional.layer_norm(x, [WIDTH], weight, weight), 2 * one
    yield ("layer_norm_backward",
           lambda: aten.native_layer_norm_backward(y, x, [WIDTH], mean, rstd, weight, weight,
                                                   [True, True, True]), 3 * one)
    yield "embedding", lambda: functional.embedding(indices, x), 2 * one
    yield "cross_entropy", lambda: functional.cross_entropy(x, targets), one
    q = torch.randn(8, 12, max(options.side // 4, 1), 64, **here)
    yield ("causal attention",
           lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True), 4 * q.nbytes)
    if name != "float32":
        return
    quarter = max(options.elements // 4, 1)
    means, squares = torch.zeros(2, quarter, **here)
    step = torch.ones((), device=options.device)
    yield ("adamw",
           lambda: torch._fused_adamw_([x.view(-1)[:quarter]], [y.view(-1)[:quarter]], [means],
                                       [squares], [], [step], lr=1e-5, beta1=0.9, beta2=0.95,
                                       weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False),
           7 / 4 * one)


def kernels(options):
    for name, dtype in DTYPES.items():
        for operator, call, moved in passes(options, name, dtype):
            seconds = call_seconds(options, call)
            print(json.dumps({"operator": operator, "dtype": name, "us": seconds * 1e6,
                              "gb_per_s": moved / seconds / 1e9}), flush=True)


def matmul(options):
    layers = [(options.width, 3 * options.width), (options.width, options.width),
              (options.width, 4 * options.width), (4 * options.width, options.width),
              (options.width, options.vocabulary)]
    products = []
    for into, out in layers:
        products += [(options.tokens, into, out, "nt"), (options.tokens, out, into, "nn"),
                     (out, options.tokens, into, "tn")]
    products += [(options.side >> i,) * 3 + ("nn",) for i in range(4) if options.side >> i]
    for name, dtype in DTYPES.items():
        for m, k, n, layout in products:
            here = {"dtype": dtype, "device": options.device}
            a = torch.randn(k, m, **here).t() if layout == "tn" else torch.randn(m, k, **here)
            b = torch.randn(n, k, **here).t() if layout == "nt" else torch.randn(k, n, **here)
            seconds = call_seconds(options, lambda: torch.mm(a, b))
            print(json.dumps({"m": m, "k": k, "n": n, "layout": layout, "dtype": name,
                              "us": seconds * 1e6, "tflop_per_s": 2 * m * k * n / seconds / 1e12}),
                  flush=True)


CALLS = r"""
#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <map>

static void wait(const torch::Device& device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

// The same measurement as in launcher/bench/call_time.h.
std::map<std::string, double> measure(const std::string& name, int64_t rounds) {
  const torch::Device device(name);
  const auto a = torch::ones({4}, device), b = torch::ones({4}, device);
  const auto out = torch::empty({4}, device), square = torch::ones({4, 4}, device);
  const auto leaf = torch::ones({4}, device).requires_grad_();
  std::map<std::string, double> result;
  const auto time = [&](const std::string& what, const std::function<void()>& call) {
    constexpr int kCalls = 200;
    std::vector<double> taken;
    for (int64_t i = -1; i < rounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int j = 0; j < kCalls; ++j) call();
      const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
      wait(device);
      if (i >= 0) taken.push_back(ns.count() / kCalls);
    }
    std::sort(taken.begin(), taken.end());
    result[what + "_ns"] = taken[taken.size() / 2];
  };
  {
    const torch::NoGradGuard no_grad;
    time("empty", [&] { torch::empty({4}, device); });
    time("view", [&] { a.view({2, 2}); });
    time("add", [&] { torch::add(a, b); });
    time("add_inplace", [&] { out.add_(a); });
    time("add_out", [&] { torch::add_out(const_cast<torch::Tensor&>(out), a, b); });
    time("relu", [&] { torch::relu(a); });
    time("mm", [&] { torch::mm(square, square); });
    time("layer_norm", [&] { torch::layer_norm(square, {4}, a, b); });
  }
  time("add_recorded", [&] { torch::add(leaf, b); });
  time("mul_recorded", [&] { torch::mul(leaf, b); });
  return result;
}
"""


def calls(options):
    """From C++, as Lockstep's are: Python's own cost is not PyTorch's. Needs a C++ compiler."""
    from torch.utils import cpp_extension
    extension = cpp_extension.load_inline("small_calls", CALLS, functions=["measure"],
                                          extra_cflags=["-O2"])
    print(json.dumps({"device": options.device, **extension.measure(options.device, 25)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("table", choices=["kernels", "matmul", "calls"])
    parser.add_argument("--device", default="cuda:0")
    for name, default in [("elements", 1 << 26), ("tokens", 8192), ("width", 768),
                          ("vocabulary", 50304), ("side", None)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    options.side = options.side or (4096 if options.table == "kernels" else 8192)
    with torch.no_grad() if options.table != "calls" else torch.enable_grad():
        {"kernels": kernels, "matmul": matmul, "calls": calls}[options.table](options)


if __name__ == "__main__":
    main()
