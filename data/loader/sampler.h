#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::data {

/// The order in which samples are taken: a pure function of epoch and position, so that any number
/// of threads may ask for any position, and a run that is resumed goes on in the same order.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Samples of an epoch.
  virtual int64_t size() const = 0;
  /// The number of the sample at `position`, from 0 to size() - 1, of an epoch.
  virtual int64_t index(int64_t epoch, int64_t position) const = 0;
};

// Constructors throw Error for counts below 0, and for draws from nothing.

/// 0, 1, 2, ..., count - 1.
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(int64_t count);
  int64_t size() const override { return count_; }
  int64_t index(int64_t, int64_t position) const override { return position; }

 private:
  int64_t count_;
};

/// Every number below `count` once an epoch, in an order of its own for each seed and epoch.
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(int64_t count, uint64_t seed = 0);
  int64_t size() const override { return count_; }
  int64_t index(int64_t epoch, int64_t position) const override;

 private:
  int64_t count_;
  uint64_t seed_;
};

/// `draws` independent draws with repetition, number i with probability weights[i] / sum(weights).
class WeightedSampler final : public Sampler {
 public:
  /// Throws Error unless the weights are finite, not negative and not all 0.
  WeightedSampler(const std::vector<double>& weights, int64_t draws, uint64_t seed = 0);
  int64_t size() const override { return draws_; }
  int64_t index(int64_t epoch, int64_t position) const override;

 private:
  std::vector<double> ends_;  ///< sums of the weights up to each
  int64_t draws_;
  uint64_t seed_;
};

/// The share of one of `ranks` ranks: every ranks-th position of `all`, from number `rank` on. All
/// shares are equally long: where `all` does not divide, its first positions come again at the end
/// of an epoch, or with `drop_last` its last are left out.
class DistributedSampler final : public Sampler {
 public:
  /// Throws Error unless 0 <= rank < ranks, and for `all` without samples.
  DistributedSampler(std::shared_ptr<const Sampler> all, int rank, int ranks,
                     bool drop_last = false);
  int64_t size() const override { return size_; }
  int64_t index(int64_t epoch, int64_t position) const override;

 private:
  std::shared_ptr<const Sampler> all_;
  int rank_;
  int ranks_;
  int64_t size_;
};

}  // namespace lockstep::data
