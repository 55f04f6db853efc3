#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::compiler {

/// A number as a function of sizes that vary: `factor` times a product of some, another size or
/// less it, and `offset`.
struct SizeTerm {
  int64_t factor = 0;
  std::vector<size_t> sizes;  ///< those of the product, ascending, repeated for powers
  int64_t offset = 0;
  size_t other = 0;  ///< the other size
  int64_t sign = 0;  ///< of it: 1, -1, or 0 where there is none

  int64_t value(std::span<const int64_t> of_sizes) const;
  friend bool operator==(const SizeTerm&, const SizeTerm&) = default;
};

/// Finds what numbers that were seen for several sizes are of these. A term is an integer times one
/// to three of the sizes, or times one of them and more or less by a number, or a number less one,
/// or the sum or difference of two and a number.
class SizeTerms {
 public:
  /// `samples[k]` has the sizes of sample k, the same number in each.
  explicit SizeTerms(std::vector<std::vector<int64_t>> samples);

  /// Returns all terms that give `numbers[k]` for sample k. More samples leave fewer of them.
  const std::vector<SizeTerm>& find(const std::vector<int64_t>& numbers);

 private:
  void add_products(const std::vector<int64_t>& numbers, std::vector<SizeTerm>& found) const;
  void add_sums(const std::vector<int64_t>& numbers, std::vector<SizeTerm>& found) const;
  void add_pairs(const std::vector<int64_t>& numbers, std::vector<SizeTerm>& found) const;
  bool fits(const SizeTerm& term, const std::vector<int64_t>& numbers) const;

  std::vector<std::vector<int64_t>> samples_;
  size_t count_ = 0;                           ///< sizes of a sample
  std::vector<std::vector<size_t>> products_;  ///< the sizes of each
  std::map<std::vector<int64_t>, std::vector<SizeTerm>> known_;
};

}  // namespace lockstep::compiler
