#include "compile/size_terms.h"

#include <optional>

namespace lockstep::compiler {

namespace {

/// The product of some of the sizes; nothing if it is none of an int64.
std::optional<int64_t> product_of(std::span<const int64_t> sizes, const std::vector<size_t>& some) {
  int64_t product = 1;
  for (const size_t i : some) {
    if (__builtin_mul_overflow(product, sizes[i], &product)) return std::nullopt;
  }
  return product;
}

}  // namespace

int64_t SizeTerm::value(std::span<const int64_t> of_sizes) const {
  int64_t number = factor;
  for (const size_t i : sizes) number *= of_sizes[i];
  return number + offset + (sign != 0 ? sign * of_sizes[other] : 0);
}

SizeTerms::SizeTerms(std::vector<std::vector<int64_t>> samples)
    : samples_(std::move(samples)), count_(samples_.empty() ? 0 : samples_[0].size()) {
  for (size_t a = 0; a < count_; ++a) {
    products_.push_back({a});
    for (size_t b = a; b < count_; ++b) {
      products_.push_back({a, b});
      for (size_t c = b; c < count_; ++c) products_.push_back({a, b, c});
    }
  }
}

const std::vector<SizeTerm>& SizeTerms::find(const std::vector<int64_t>& numbers) {
  const auto [known, is_new] = known_.try_emplace(numbers);
  if (is_new) {
    add_products(numbers, known->second);
    add_sums(numbers, known->second);
    add_pairs(numbers, known->second);
  }
  return known->second;
}

void SizeTerms::add_products(const std::vector<int64_t>& numbers,
                             std::vector<SizeTerm>& found) const {
  for (const std::vector<size_t>& sizes : products_) {
    std::optional<int64_t> factor;
    bool fits = true;
    for (size_t k = 0; fits && k < samples_.size(); ++k) {
      const std::optional<int64_t> product = product_of(samples_[k], sizes);
      fits = product && *product != 0 && numbers[k] != 0 && numbers[k] % *product == 0 &&
             numbers[k] / *product == factor.value_or(numbers[k] / *product);
      if (fits) factor = numbers[k] / *product;
    }
    if (fits && factor) found.push_back({*factor, sizes, 0});
  }
}

void SizeTerms::add_sums(const std::vector<int64_t>& numbers, std::vector<SizeTerm>& found) const {
  for (size_t size = 0; size < count_; ++size) {
    std::optional<SizeTerm> term;
    for (size_t k = 1; !term && k < samples_.size(); ++k) {
      const int64_t run = samples_[k][size] - samples_[0][size];
      const int64_t rise = numbers[k] - numbers[0];
      if (run == 0 || rise == 0 || rise % run != 0) continue;
      const int64_t factor = rise / run;
      term = SizeTerm{factor, {size}, numbers[0] - factor * samples_[0][size]};
    }
    // Without an offset it is among the products. What is left of a number falls by 1.
    if (term && term->offset != 0 && term->factor >= -1 && fits(*term, numbers)) {
      found.push_back(*term);
    }
  }
}

void SizeTerms::add_pairs(const std::vector<int64_t>& numbers, std::vector<SizeTerm>& found) const {
  for (size_t first = 0; first < count_; ++first) {
    for (size_t other = 0; other < count_; ++other) {
      for (const int64_t sign : {1, -1}) {
        if (other == first || (sign > 0 && other < first)) continue;
        SizeTerm term{.factor = 1, .sizes = {first}, .other = other, .sign = sign};
        term.offset = numbers[0] - term.value(samples_[0]);
        if (fits(term, numbers)) found.push_back(std::move(term));
      }
    }
  }
}

bool SizeTerms::fits(const SizeTerm& term, const std::vector<int64_t>& numbers) const {
  for (size_t k = 0; k < samples_.size(); ++k) {
    if (term.value(samples_[k]) != numbers[k]) return false;
  }
  return true;
}

}  // namespace lockstep::compiler
