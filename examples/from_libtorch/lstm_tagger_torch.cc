// A tagger of sentences: an LSTM that names the part of speech of each word.

#include <cstdio>
#include <tuple>

#include "fill_torch.h"

namespace nn = torch::nn;
using torch::Tensor;

struct Tagger : nn::Module {
  Tagger() {
    register_module("words", words);
    register_module("lstm", lstm);
    register_module("tags", tags);
  }
  Tensor forward(const Tensor& sentences) {
    return tags->forward(std::get<0>(lstm->forward(words->forward(sentences))));
  }
  nn::Embedding words{50, 16};
  nn::LSTM lstm{nn::LSTMOptions(16, 24).num_layers(2).batch_first(true)};
  nn::Linear tags{24, 5};
};

int main() {
  const Tensor sentences = ((torch::arange(8 * 12) * 11) % 50).view({8, 12});
  const Tensor expected = sentences % 5;
  Tagger tagger;
  fill(tagger.parameters(), 0.3);
  torch::optim::Adam optimizer(tagger.parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const Tensor scores = tagger.forward(sentences);
    const Tensor loss = nn::functional::cross_entropy(scores.flatten(0, 1), expected.flatten());
    loss.backward();
    nn::utils::clip_grad_norm_(tagger.parameters(), 0.5);
    optimizer.step();
    std::printf("%.6f\n", loss.item<double>());
  }
}
