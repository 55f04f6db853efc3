#include "optim/option_field.h"

#include "core/base/check.h"

namespace lockstep::optim {

namespace {

bool is_in_range(double value, OptionRange range) {
  switch (range) {
    case OptionRange::kAny:
      return value == value;
    case OptionRange::kNotNegative:
      return value >= 0;
    case OptionRange::kPositive:
      return value > 0;
    case OptionRange::kBelowOne:
      return value >= 0 && value < 1;
    case OptionRange::kUpToOne:
      return value >= 0 && value <= 1;
  }
  return false;
}

const char* text_of(OptionRange range) {
  switch (range) {
    case OptionRange::kAny:
      return "a number";
    case OptionRange::kNotNegative:
      return "at least 0";
    case OptionRange::kPositive:
      return "above 0";
    case OptionRange::kBelowOne:
      return "from 0 to below 1";
    case OptionRange::kUpToOne:
      return "from 0 to 1";
  }
  return "";
}

}  // namespace

double OptionField::get() const {
  return std::visit([](const auto* field) { return static_cast<double>(*field); }, value);
}

void OptionField::set(double number) const {
  if (double* const* real = std::get_if<double*>(&value)) {
    **real = number;
  } else if (int64_t* const* integer = std::get_if<int64_t*>(&value)) {
    **integer = static_cast<int64_t>(number);
  } else {
    *std::get<bool*>(value) = number != 0;
  }
}

std::vector<OptionValue> values_of(std::span<const OptionField> fields) {
  std::vector<OptionValue> values;
  for (const OptionField& field : fields) values.push_back({field.name, field.get()});
  return values;
}

void check_ranges(const char* kind, std::span<const OptionField> fields) {
  for (const OptionField& field : fields) {
    LS_CHECK(is_in_range(field.get(), field.range), ConfigError,
             "[optim.{}] {} is out of range: expected {}, got {}.", kind, field.name,
             text_of(field.range), field.get());
  }
}

}  // namespace lockstep::optim
