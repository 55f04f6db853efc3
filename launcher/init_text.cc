#include "launcher/init_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/digits.h"

namespace lockstep::launcher {

namespace {

/// The numbers of a size that its config states.
struct Recipe {
  const char* name;
  const char* model;  ///< comment and fields of the model, with {} for vocab_size
  int64_t context;
  int64_t batch;
  int64_t micro_batch;
  int64_t most_steps;
  const char* optimizer;
  const char* limit;  ///< of time, as a line of train { }
};

constexpr auto kRecipes = std::to_array<Recipe>({
    {"small",
     R"(  # A Llama with 1.8 million parameters besides those of its tokens.
  llama {{
    vocab_size: {}
    context_length: 256
    layers: 4
    heads: 6
    width: 192
    hidden_width: 512
    tie_embeddings: true
  }}
)",
     256, 16, 16, 1000,
     R"(  # Muon for the matrices of hidden layers, AdamW for the rest.
  learning_rate: 3e-3
  muon { learning_rate: 0.02 }
)",
     "  # The run ends within five minutes, after fewer steps where it has to; 0 is no limit.\n"
     "  time_limit_seconds: 300\n"},
    {"medium",
     R"(  # A Llama with 10.6 million parameters besides those of its tokens: hours on a processor, minutes on
  # a GPU.
  llama {{
    vocab_size: {}
    context_length: 256
    layers: 6
    heads: 6
    width: 384
    hidden_width: 1024
    tie_embeddings: true
  }}
)",
     256, 32, 32, 5000,
     R"(  # Muon for the matrices of hidden layers, AdamW for the rest.
  learning_rate: 2e-3
  muon { learning_rate: 0.02 }
)",
     ""},
    {"124m",
     R"(  # GPT-2's smallest published size: 85 million parameters besides those of its tokens. For GPUs.
  # To start from OpenAI's weights, name their folder here, and their tokenizer below:
  # weights: "gpt2"
  gpt2 {{
    vocab_size: {}
    context_length: 1024
    layers: 12
    heads: 12
    width: 768
  }}
)",
     1024, 64, 8, 10000,
     R"(  learning_rate: 6e-4
)",
     ""},
});

const Recipe& recipe_of(InitSize size) { return kRecipes[static_cast<size_t>(size)]; }

/// `text` in quotes for a config.
std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string tokenizer_text(const InitText& text) {
  if (text.vocabulary == 0) {
    return "    # Each byte is a token: this text is too short to learn longer ones from.\n"
           "    tokenizer { byte {} }\n";
  }
  return fmt::format(
      R"(    # Byte-pair encoding in GPT-2's manner, trained on this text: frequent words become one token, and
    # any text can be written. It has {} tokens, and {:.1f} bytes of this text are one on average.
    # GPT-2's own tokenizer has 50257: of web pages in English. To use it, as its weights need, set
    # bpe {{ vocab: "vocab.json" merges: "merges.txt" }} with its files, and the model's vocab_size.
    tokenizer {{ bpe {{ vocab_size: {} }} }}
)",
      grouped(text.tokens), text.bytes_per_token, text.vocabulary);
}

/// Steps that read the training text once.
double steps_of_epoch(const InitText& text, const Recipe& recipe) {
  constexpr double kTraining = 0.9;  // the rest is held out
  const double tokens = kTraining * static_cast<double>(text.bytes) / text.bytes_per_token;
  return tokens / static_cast<double>(recipe.batch * recipe.context);
}

/// Steps that read the text about twenty times, within the recipe's limit.
int64_t steps_for(const InitText& text, const Recipe& recipe) {
  constexpr double kEpochs = 20;
  constexpr int64_t kLeast = 100;
  const auto wanted = static_cast<int64_t>(kEpochs * steps_of_epoch(text, recipe));
  return std::clamp(wanted / 100 * 100, kLeast, recipe.most_steps);
}

/// `text` with spaces for control characters, for a comment.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

std::vector<std::string> init_size_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

InitSize parse_init_size(const std::string& name) {
  const std::vector<std::string> names = init_size_names();
  return static_cast<InitSize>(std::ranges::find(names, name) - names.begin());
}

int64_t vocabulary_for(int64_t text_bytes) {
  constexpr int64_t kShortest = 200'000;
  constexpr int64_t kBytesPerToken = 1500;
  constexpr uint64_t kLargest = 32768;
  if (text_bytes < kShortest) return 0;
  const auto wanted = static_cast<uint64_t>(text_bytes / kBytesPerToken);
  return static_cast<int64_t>(std::clamp<uint64_t>(std::bit_floor(wanted), 512, kLargest));
}

int64_t init_context(InitSize size) { return recipe_of(size).context; }

std::string init_config(const InitText& text) {
  const Recipe& recipe = recipe_of(text.size);
  const int64_t steps = steps_for(text, recipe);
  return fmt::format(
      R"(# proto-file: configs/run.proto
# proto-message: lockstep.config.RunConfig

# Trains a language model on {path} ({bytes} bytes). `lockstep config fields` explains every field, and
# `lockstep plan` says what a change costs in parameters and memory.
model {{
{model}}}
data {{
  text {{
    # A file, a folder or a pattern. The last tenth is held out, for validation.
    path: {quoted_path}
{tokenizer}  }}
}}
optimizer {{
{optimizer}}}
schedule {{
  # The learning rate rises during these steps, then falls along half a cosine: over as many steps as a
  # time limit leaves time for.
  warmup_steps: {warmup}
  min_learning_rate_ratio: 0.05
  fit_time_limit: true
}}
train {{
  # A step reads batch_size sequences of context_length tokens; these steps read the text about {epochs} times.
  steps: {steps}
  batch_size: {batch}
{micro_batch}{limit}  eval_every: {eval_every}
  # Shows text that the model writes, every so many steps.
  sample_every: {eval_every}
}}
)",
      fmt::arg("path", one_line(text.path)), fmt::arg("bytes", grouped(text.bytes)),
      fmt::arg("model", fmt::format(fmt::runtime(recipe.model), text.tokens)),
      fmt::arg("quoted_path", in_quotes(text.path)), fmt::arg("tokenizer", tokenizer_text(text)),
      fmt::arg("optimizer", recipe.optimizer),
      fmt::arg("warmup", std::max<int64_t>(steps / 40, 10)),
      fmt::arg("epochs",
               fmt::format("{:.2g}", static_cast<double>(steps) / steps_of_epoch(text, recipe))),
      fmt::arg("steps", steps), fmt::arg("batch", recipe.batch),
      fmt::arg("micro_batch", recipe.micro_batch == recipe.batch
                                  ? std::string()
                                  : fmt::format("  # Sequences that are in memory at once.\n"
                                                "  micro_batch_size: {}\n",
                                                recipe.micro_batch)),
      fmt::arg("limit", recipe.limit), fmt::arg("eval_every", std::max<int64_t>(steps / 4, 50)));
}

}  // namespace lockstep::launcher
