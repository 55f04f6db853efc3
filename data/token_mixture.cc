#include "data/token_mixture.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

std::vector<double> weights_of(const std::vector<TokenMixture::Source>& sources) {
  std::vector<double> weights;
  for (const TokenMixture::Source& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

TokenMixture::TokenMixture(std::vector<Source> sources, uint64_t seed, int64_t sequences_per_step)
    : sources_(std::move(sources)),
      turns_(weights_of(sources_), seed),
      sequences_per_step_(sequences_per_step) {
  LS_ASSERT(sequences_per_step > 0);
}

uint64_t TokenMixture::seed_of_source(uint64_t seed, size_t source) {
  return random_draw(seed, DrawStream::kMixture, 1, static_cast<int64_t>(source), 0)[0];
}

void TokenMixture::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const {
  const WeightedTurns::Turn turn = turn_of({step, index});
  sources_[turn.source].data->sequence(turn.position, 0, inputs, targets);
}

std::vector<int64_t> TokenMixture::documents(int64_t step, int64_t index, int64_t length) const {
  const WeightedTurns::Turn turn = turn_of({step, index});
  return sources_[turn.source].data->documents(turn.position, 0, length);
}

std::vector<SampleOrigin> TokenMixture::origins_at(std::span<const Place> places,
                                                   int64_t length) const {
  std::vector<SampleOrigin> origins(places.size());
  std::vector<std::vector<Place>> places_of(sources_.size());
  std::vector<std::vector<size_t>> samples(sources_.size());  // that are at those places
  for (size_t i = 0; i < places.size(); ++i) {
    const WeightedTurns::Turn turn = turn_of(places[i]);
    places_of[turn.source].push_back({turn.position, 0});
    samples[turn.source].push_back(i);
  }
  for (size_t source = 0; source < sources_.size(); ++source) {
    std::vector<SampleOrigin> found = sources_[source].data->origins_at(places_of[source], length);
    for (size_t i = 0; i < found.size(); ++i) origins[samples[source][i]] = std::move(found[i]);
  }
  return origins;
}

int64_t TokenMixture::validation_windows(int64_t length) const {
  int64_t count = 0;
  for (const Source& source : sources_) count += source.data->validation_windows(length);
  return count;
}

TokenMixture::Window TokenMixture::held_out_window(int64_t index, int64_t length) const {
  LS_ASSERT(index >= 0 && index < validation_windows(length));
  auto source = sources_.begin();
  while (index >= source->data->validation_windows(length)) {
    index -= (source++)->data->validation_windows(length);
  }
  return {source->data.get(), index};
}

int64_t TokenMixture::validation_window(int64_t index, std::span<int64_t> inputs,
                                        std::span<int64_t> targets) const {
  const Window window = held_out_window(index, std::ssize(inputs));
  return window.source->validation_window(window.index, inputs, targets);
}

std::vector<int64_t> TokenMixture::validation_documents(int64_t index, int64_t length) const {
  const Window window = held_out_window(index, length);
  return window.source->validation_documents(window.index, length);
}

ContentHash TokenMixture::fingerprint() const {
  ContentHasher hasher;
  for (const Source& source : sources_) {
    hasher.add(source.data->fingerprint()).add(std::bit_cast<uint64_t>(source.weight));
  }
  return hasher.result();
}

ContentHash TokenMixture::identity() const {
  ContentHasher hasher;
  for (const Source& source : sources_) {
    hasher.add(source.data->identity()).add(std::bit_cast<uint64_t>(source.weight));
  }
  return hasher.result();
}

int64_t TokenMixture::held_out_tokens() const {
  int64_t tokens = 0;
  for (const Source& source : sources_) tokens += source.data->held_out_tokens();
  return tokens;
}

double TokenMixture::held_out_bytes_per_token() const {
  double bytes = 0, tokens = 0;
  for (const Source& source : sources_) {
    const auto targets = static_cast<double>(source.data->held_out_tokens());
    bytes += source.data->held_out_bytes_per_token() * targets;
    tokens += targets;
  }
  return tokens > 0 ? bytes / tokens : 0;
}

std::vector<uint32_t> TokenMixture::sample_start(uint64_t seed) const {
  for (const Source& source : sources_) {
    std::vector<uint32_t> start = source.data->sample_start(seed);
    if (!start.empty()) return start;
  }
  return {};
}

std::vector<std::string> TokenMixture::notes() const {
  std::vector<std::string> notes;
  for (const Source& source : sources_) {
    for (std::string& note : source.data->notes()) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace lockstep::train
