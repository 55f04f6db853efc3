#include "data/token_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "data/epoch_order.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

int64_t total(const std::vector<TokenPart>& parts, int64_t less) {
  int64_t sum = 0;
  for (const TokenPart& part : parts) sum += std::max<int64_t>(part.tokens.size() - less, 0);
  return sum;
}

int64_t windows(const TokenPart& part, int64_t length) {
  return std::max<int64_t>((part.tokens.size() - 1 + length - 1) / length, 0);
}

double bytes_per_token(const std::vector<TokenPart>& parts, const Tokenizer& tokenizer) {
  std::string text;
  double bytes = 0;
  for (const TokenPart& part : parts) {
    for (int64_t i = 1; i < part.tokens.size(); ++i) {
      text.clear();
      // A token outside the tokenizer's vocabulary is reported by `read`.
      if (part.tokens[i] < tokenizer.vocabulary()) tokenizer.decode(part.tokens[i], text);
      bytes += static_cast<double>(text.size());
    }
    part.tokens.check();
  }
  const int64_t targets = total(parts, 1);
  return targets > 0 ? bytes / static_cast<double>(targets) : 0;
}

/// Adds each part's size and up to `runs` evenly spaced runs of tokens in it.
void add_runs(ContentHasher& hasher, const std::vector<TokenPart>& parts, int64_t runs) {
  constexpr int64_t kRun = 4096;
  std::vector<uint16_t> room;
  for (const TokenPart& part : parts) {
    const int64_t size = part.tokens.size();
    hasher.add(static_cast<uint64_t>(size));
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t first = (size - std::min(size, kRun)) * i / (runs - 1);
      hasher.add(part.tokens.slice(first, std::min(size, kRun)).stored(room));
    }
    part.tokens.check();
  }
}

}  // namespace

TokenData::TokenData(std::vector<TokenPart> training, std::vector<TokenPart> held_out,
                     TokenDataOptions options)
    : training_(std::move(training)), held_out_(std::move(held_out)), options_(std::move(options)) {
  LS_CHECK(training_tokens() > 0, DataError, "[data] there are no tokens to train on.");
  LS_ASSERT(options_.vocabulary > 0 && options_.sequences_per_step > 0);
  if (options_.tokenizer) bytes_per_token_ = bytes_per_token(held_out_, *options_.tokenizer);
}

int64_t TokenData::training_tokens() const { return total(training_, 0); }
int64_t TokenData::held_out_tokens() const { return total(held_out_, 1); }

ContentHash TokenData::fingerprint() const {
  ContentHasher hasher;
  add_runs(hasher, training_, 16);
  return hasher.result();
}

ContentHash TokenData::identity() const {
  constexpr uint64_t kMostWhole = uint64_t{1} << 30;
  uint64_t bytes = 0;
  for (const auto* parts : {&training_, &held_out_}) {
    for (const TokenPart& part : *parts) bytes += part.tokens.bytes().size();
  }
  ContentHasher hasher;
  for (const auto* parts : {&training_, &held_out_}) {
    hasher.add(parts->size());
    if (bytes > kMostWhole) {
      add_runs(hasher, *parts, 1024);
      continue;
    }
    for (const TokenPart& part : *parts) {
      hasher.add(part.tokens.bytes());
      part.tokens.check();
    }
  }
  return hasher.result();
}

TokenData::Window TokenData::training_window(int64_t step, int64_t index, int64_t length) const {
  const bool random = options_.order == WindowOrder::kRandom;
  // Number of windows in a part: at every offset, or only at multiples of the length.
  const auto count = [&](const TokenPart& part) {
    return random ? std::max<int64_t>(part.tokens.size() - length, 0)
                  : std::max<int64_t>((part.tokens.size() - 1) / length, 0);
  };
  int64_t all = 0;
  for (const TokenPart& part : training_) all += count(part);
  LS_CHECK(all > 0, DataError,
           "[data] {}{}: {} training tokens are too few for sequences of length {}: expected at "
           "least {} in one file. Hold out less or shorten the sequences.",
           training_.front().name, training_.size() > 1 ? " and others" : "", training_tokens(),
           length, length + 1);
  int64_t chosen;
  if (random) {
    // 64 random bits make the remainder uniform to within the number of windows / 2^64.
    const uint64_t bits = random_draw(options_.seed, DrawStream::kWindowOffset, step, index, 0)[0];
    chosen = static_cast<int64_t>(bits % static_cast<uint64_t>(all));
  } else {
    const int64_t number = step * options_.sequences_per_step + index;
    chosen = shuffled(options_.seed, number / all, all, number % all);
  }
  for (const TokenPart& part : training_) {
    if (chosen < count(part)) return {&part, random ? chosen : chosen * length};
    chosen -= count(part);
  }
  throw InternalError("[data] a window lies behind the last part.");
}

void TokenData::read(const Window& window, std::span<int64_t> inputs,
                     std::span<int64_t> targets) const {
  const TokenArray& tokens = window.part->tokens;
  const int64_t largest =
      std::max(tokens.read(window.first, inputs), tokens.read(window.first + 1, targets));
  if (largest < options_.vocabulary) return;
  int64_t at = window.first;
  while (tokens[at] < options_.vocabulary) ++at;
  throw DataError(fmt::format(
      "[data] {}: token {} of the file is {}: expected ids below the model's vocabulary of {}. Set "
      "the model's vocab_size to the vocabulary the file was made with, or make it again.",
      window.part->name, at, tokens[at], options_.vocabulary));
}

void TokenData::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                         std::span<int64_t> targets) const {
  LS_ASSERT(inputs.size() == targets.size() && !inputs.empty());
  read(training_window(step, index, std::ssize(inputs)), inputs, targets);
}

std::vector<SampleOrigin> TokenData::origins_at(std::span<const Place> places,
                                                int64_t length) const {
  std::vector<SampleOrigin> origins;
  std::map<const TokenPart*, std::vector<size_t>> in_documents;  // samples, by part
  for (const Place& place : places) {
    const Window window = training_window(place.step, place.index, length);
    if (window.part->documents && options_.tokenizer) {
      in_documents[window.part].push_back(origins.size());
    }
    origins.push_back({.file = window.part->name, .unit = "token", .first = window.first});
  }
  for (const auto& [part, samples] : in_documents) {
    std::vector<int64_t> offsets;
    for (const size_t i : samples) offsets.push_back(origins[i].first);
    std::vector<SampleOrigin> found =
        origins_in(*part->documents, part->tokens, *options_.tokenizer, offsets);
    for (size_t i = 0; i < samples.size(); ++i) origins[samples[i]] = std::move(found[i]);
  }
  return origins;
}

int64_t TokenData::validation_windows(int64_t length) const {
  LS_ASSERT(length > 0);
  int64_t count = 0;
  for (const TokenPart& part : held_out_) count += windows(part, length);
  return count;
}

int64_t TokenData::validation_window(int64_t index, std::span<int64_t> inputs,
                                     std::span<int64_t> targets) const {
  LS_ASSERT(inputs.size() == targets.size() && !inputs.empty());
  const int64_t length = std::ssize(inputs);
  LS_ASSERT(index >= 0 && index < validation_windows(length));
  auto part = held_out_.begin();
  while (index >= windows(*part, length)) index -= windows(*part++, length);
  const int64_t first = index * length;
  const int64_t real = std::min(length, part->tokens.size() - 1 - first);
  const auto count = static_cast<size_t>(real);
  std::ranges::fill(inputs, 0);
  std::ranges::fill(targets, kIgnoredTarget);
  read({&*part, first}, inputs.first(count), targets.first(count));
  return real;
}

}  // namespace lockstep::train
