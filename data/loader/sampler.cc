#include "data/loader/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "data/epoch_order.h"
#include "data/random_draw.h"

namespace lockstep::data {
namespace {

int64_t checked_count(int64_t count) {
  LS_CHECK(count >= 0, Error, "[sampler] a number of samples is negative: {}.", count);
  return count;
}

}  // namespace

SequentialSampler::SequentialSampler(int64_t count) : count_(checked_count(count)) {}

RandomSampler::RandomSampler(int64_t count, uint64_t seed)
    : count_(checked_count(count)), seed_(seed) {}

int64_t RandomSampler::index(int64_t epoch, int64_t position) const {
  return train::shuffled(seed_, epoch, count_, position);
}

WeightedSampler::WeightedSampler(const std::vector<double>& weights, int64_t draws, uint64_t seed)
    : draws_(checked_count(draws)), seed_(seed) {
  double sum = 0;
  for (const double weight : weights) {
    LS_CHECK(std::isfinite(weight) && weight >= 0, Error,
             "[sampler] a weight is {}: expected a finite number from 0 on.", weight);
    ends_.push_back(sum += weight);
  }
  LS_CHECK(std::isfinite(sum) && (sum > 0 || draws == 0), Error,
           "[sampler] the weights add up to {}: expected a finite sum above 0.", sum);
}

int64_t WeightedSampler::index(int64_t epoch, int64_t position) const {
  constexpr double kBits = 0x1p-53;
  const auto bits =
      train::random_draw(seed_, train::DrawStream::kWeightedSample, epoch, position, 0);
  const double place = static_cast<double>(bits[0] >> 11) * kBits * ends_.back();
  const auto found = std::ranges::upper_bound(ends_, place);
  // Rounding may carry the product up to the sum itself: then it is the last one with a weight.
  if (found != ends_.end()) return found - ends_.begin();
  return std::ranges::lower_bound(ends_, ends_.back()) - ends_.begin();
}

DistributedSampler::DistributedSampler(std::shared_ptr<const Sampler> all, int rank, int ranks,
                                       bool drop_last)
    : all_(std::move(all)), rank_(rank), ranks_(ranks) {
  LS_CHECK(ranks >= 1 && rank >= 0 && rank < ranks, Error,
           "[sampler] expected a rank below the number of ranks, got {} of {}.", rank, ranks);
  LS_CHECK(all_->size() > 0, Error, "[sampler] there are no samples to share among {} ranks.",
           ranks);
  size_ = drop_last ? all_->size() / ranks : (all_->size() + ranks - 1) / ranks;
}

int64_t DistributedSampler::index(int64_t epoch, int64_t position) const {
  return all_->index(epoch, (position * ranks_ + rank_) % all_->size());
}

}  // namespace lockstep::data
