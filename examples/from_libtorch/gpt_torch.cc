// A transformer that predicts the next of 64 tokens.

#include <cstdio>

#include "fill_torch.h"

namespace nn = torch::nn;
using torch::Tensor;

constexpr int64_t kTokens = 64, kWidth = 32, kHeads = 4, kLength = 16;

struct LayerImpl : nn::Module {
  LayerImpl() {
    register_module("norm1", norm1);
    register_module("qkv", qkv);
    register_module("project", project);
    register_module("norm2", norm2);
    register_module("up", up);
    register_module("down", down);
  }
  Tensor forward(const Tensor& x) {
    const std::vector<int64_t> heads = {x.size(0), x.size(1), kHeads, kWidth / kHeads};
    std::vector<Tensor> parts = qkv->forward(norm1->forward(x)).chunk(3, -1);
    for (Tensor& part : parts) part = part.view(heads).transpose(1, 2);
    const Tensor seen =
        at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const Tensor y = x + project->forward(seen.transpose(1, 2).reshape(x.sizes()));
    return y + down->forward(torch::gelu(up->forward(norm2->forward(y))));
  }
  nn::LayerNorm norm1{nn::LayerNormOptions({kWidth})}, norm2{nn::LayerNormOptions({kWidth})};
  nn::Linear qkv{kWidth, 3 * kWidth}, project{kWidth, kWidth};
  nn::Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
};
TORCH_MODULE(Layer);

struct Gpt : nn::Module {
  Gpt() {
    register_module("tokens", tokens);
    register_module("places", places);
    register_module("layer1", layer1);
    register_module("layer2", layer2);
    register_module("norm", norm);
    register_module("head", head);
  }
  Tensor forward(const Tensor& ids) {
    const Tensor x = tokens->forward(ids) + places->forward(torch::arange(ids.size(1)));
    return head->forward(norm->forward(layer2->forward(layer1->forward(x))));
  }
  nn::Embedding tokens{kTokens, kWidth};
  nn::Embedding places{kLength, kWidth};
  Layer layer1, layer2;
  nn::LayerNorm norm{nn::LayerNormOptions({kWidth})};
  nn::Linear head{kWidth, kTokens};
};

int main() {
  const Tensor text = ((torch::arange(4 * (kLength + 1)) * 7) % kTokens).view({4, kLength + 1});
  Gpt gpt;
  fill(gpt.parameters(), 0.2);
  torch::optim::AdamW optimizer(gpt.parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const Tensor logits = gpt.forward(text.slice(1, 0, kLength));
    const Tensor loss =
        nn::functional::cross_entropy(logits.flatten(0, 1), text.slice(1, 1).flatten());
    loss.backward();
    optimizer.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
