#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace lockstep::optim {

/// Values that an option may have. NaN is in none of them.
enum class OptionRange : uint8_t {
  kAny,
  kNotNegative,
  kPositive,
  kBelowOne,  ///< from 0 to 1, without 1
  kUpToOne,   ///< from 0 to 1
};

/// An option of an optimizer: its name, as in the struct of options, where its value is, and which
/// values it may have. Every kind of options has a function `fields_of` that lists them, which
/// checking, saving and loading of options go by.
struct OptionField {
  const char* name;
  std::variant<double*, int64_t*, bool*> value;
  OptionRange range = OptionRange::kAny;

  double get() const;
  void set(double number) const;
};

/// An option's name and value.
struct OptionValue {
  const char* name;
  double value;
};
std::vector<OptionValue> values_of(std::span<const OptionField> fields);

/// Throws ConfigError, with the name of `kind` ("SGD"), for the first value out of its range.
void check_ranges(const char* kind, std::span<const OptionField> fields);

}  // namespace lockstep::optim
