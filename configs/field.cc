#include "configs/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "configs/options.pb.h"
#include "core/base/digits.h"
#include "core/base/nearest.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

bool is_integer(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return true;
    default:
      return false;
  }
}

bool is_number(const FieldDescriptor& field) {
  return is_integer(field) || field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
}

/// Names that a user may write: enum values without the UNSPECIFIED zero, or accepted texts.
std::vector<std::string_view> names(const FieldDescriptor& field) {
  std::vector<std::string_view> result;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const pb::EnumValueDescriptor* value = field.enum_type()->value(i);
      if (value->number() != 0) result.push_back(value->name());
    }
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const auto& accepted_texts = field.options().GetRepeatedExtension(accepted);
    result.assign(accepted_texts.begin(), accepted_texts.end());
  }
  return result;
}

std::string bound_text(const FieldDescriptor& field, double bound) {
  return is_integer(field) ? lockstep::bound_text(static_cast<int64_t>(bound))
                           : lockstep::bound_text(bound);
}

std::string number_kind(const FieldDescriptor& field) {
  if (field.options().GetExtension(power_of_two)) return "a power of two";
  return is_integer(field) ? "an integer" : "a number";
}

std::string interval_text(const FieldDescriptor& field) {
  if (!field.options().HasExtension(range)) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64
               ? " from 0 to " + lockstep::bound_text(std::numeric_limits<uint64_t>::max())
               : "";
  }
  const Range& interval = field.options().GetExtension(range);
  const std::string low = bound_text(field, interval.min());
  const std::string high = bound_text(field, interval.max());
  if (interval.has_min() && interval.has_max() && !interval.exclusive_min() &&
      !interval.exclusive_max()) {
    return fmt::format(" from {} to {}", low, high);
  }
  std::string result;
  if (interval.has_min()) {
    result += fmt::format(" {} {}", interval.exclusive_min() ? "above" : "of at least", low);
  }
  if (interval.has_max()) {
    result += fmt::format("{} {} {}", result.empty() ? "" : " and",
                          interval.exclusive_max() ? "below" : "at most", high);
  }
  return result;
}

bool in_range(const FieldDescriptor& field, double value) {
  if (!std::isfinite(value)) return false;
  const Range& interval = field.options().GetExtension(range);
  if (interval.has_min() &&
      (value < interval.min() || (interval.exclusive_min() && value == interval.min()))) {
    return false;
  }
  return !interval.has_max() ||
         (value < interval.max() || (!interval.exclusive_max() && value == interval.max()));
}

/// One value of a message: that of a singular field, or value `index` of a list if that is not
/// negative.
struct Value {
  const pb::Message& message;
  const FieldDescriptor& field;
  int index;

  /// Reads the value with the reflection getters of the field's C++ type.
  template <class T>
  T get(T (pb::Reflection::*single)(const pb::Message&, const FieldDescriptor*) const,
        T (pb::Reflection::*repeated)(const pb::Message&, const FieldDescriptor*, int)
            const) const {
    const pb::Reflection& reflection = *message.GetReflection();
    return index < 0 ? (reflection.*single)(message, &field)
                     : (reflection.*repeated)(message, &field, index);
  }

  double number() const {
    using R = pb::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return get(&R::GetInt32, &R::GetRepeatedInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return static_cast<double>(get(&R::GetInt64, &R::GetRepeatedInt64));
      case FieldDescriptor::CPPTYPE_UINT32:
        return get(&R::GetUInt32, &R::GetRepeatedUInt32);
      case FieldDescriptor::CPPTYPE_UINT64:
        return static_cast<double>(get(&R::GetUInt64, &R::GetRepeatedUInt64));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return get(&R::GetFloat, &R::GetRepeatedFloat);
      default:
        return get(&R::GetDouble, &R::GetRepeatedDouble);
    }
  }

  int enum_number() const {
    return get(&pb::Reflection::GetEnumValue, &pb::Reflection::GetRepeatedEnumValue);
  }

  std::string string() const {
    return get(&pb::Reflection::GetString, &pb::Reflection::GetRepeatedString);
  }

  std::string text() const {
    std::string text;
    pb::TextFormat::PrintFieldValueToString(message, &field, index, &text);
    return text;
  }
};

bool is_allowed(const Value& value) {
  const FieldDescriptor& field = value.field;
  if (is_number(field)) {
    const double number = value.number();
    const bool power = field.options().GetExtension(power_of_two);
    return in_range(field, number) &&
           (!power || std::has_single_bit(static_cast<uint64_t>(number)));
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const int number = value.enum_number();
    return number != 0 && field.enum_type()->FindValueByNumber(number) != nullptr;
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const std::vector<std::string_view> known = names(field);
    return known.empty() || std::ranges::find(known, value.string()) != known.end();
  }
  return true;
}

}  // namespace

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

PathStep parse_step(std::string_view text) {
  const size_t open = text.find('[');
  int index = 0;
  if (open == text.npos || !text.ends_with(']')) return {std::string(text)};
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data() + open + 1, end, index);
  if (error != std::errc() || stop != end || index < 0) return {std::string(text)};
  return {std::string(text.substr(0, open)), index};
}

bool lists_fields(const FieldDescriptor& field) {
  return holds_fields(field) && field.is_repeated();
}

bool holds_fields(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

std::string value_path(std::string_view path, int index) {
  return fmt::format("{}[{}]", path, index);
}

std::string expected_value(const FieldDescriptor& field) {
  if (is_number(field)) return number_kind(field) + interval_text(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return "true or false";
  const std::vector<std::string_view> known = names(field);
  const bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (known.empty()) return text ? "text in quotes" : "{ ... }";
  return fmt::format(fmt::runtime(text ? "{}\"{}\"" : "{}{}"), known.size() > 1 ? "one of " : "",
                     fmt::join(known, text ? "\", \"" : ", "));
}

std::string expected(const FieldDescriptor& field) {
  return (field.is_repeated() ? "[a, b, ...], each " : "") + expected_value(field);
}

std::vector<std::string> value_names(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {"true", "false"};
  const std::vector<std::string_view> known = names(field);
  return {known.begin(), known.end()};
}

std::string wrong_value(std::string_view path, const FieldDescriptor& field, std::string_view got) {
  std::string_view bare = got;
  if (bare.size() >= 2 && bare.front() == '"' && bare.back() == '"') {
    bare = bare.substr(1, bare.size() - 2);
  }
  const std::optional<std::string_view> meant = nearest(bare, names(field));
  const std::string hint = meant ? fmt::format(" Did you mean {}?", *meant) : "";
  return fmt::format("{} is {}: expected {}.{}", path, got, expected_value(field), hint);
}

std::string unknown_field(std::string_view path, const pb::Descriptor& type,
                          std::string_view name) {
  std::vector<std::string_view> fields;
  for (int i = 0; i < type.field_count(); ++i) fields.push_back(type.field(i)->name());
  const std::string_view owner = path.empty() ? "a run" : path;
  if (const auto meant = nearest(name, fields)) {
    return fmt::format("{} has no field \"{}\". Did you mean \"{}\"?", owner, name, *meant);
  }
  if (fields.empty()) return fmt::format("{} has no field \"{}\", nor any other.", owner, name);
  return fmt::format("{} has no field \"{}\". Its fields: {}.", owner, name,
                     fmt::join(fields, ", "));
}

bool assign(pb::Message& message, const FieldDescriptor& field, std::string_view text) {
  const bool quoted = !text.empty() && (text.front() == '"' || text.front() == '\'');
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !quoted) {
    const pb::Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) {
      reflection.AddString(&message, &field, std::string(text));
    } else {
      reflection.SetString(&message, &field, std::string(text));
    }
    return true;
  }
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&dropped_errors());
  // Parses into a new message: the parser may store a value before it rejects the text after it.
  std::unique_ptr<pb::Message> fresh(message.New());
  if (!parser.ParseFieldValueFromString(std::string(text), &field, fresh.get())) return false;
  message.MergeFrom(*fresh);
  return true;
}

std::string value_text(const pb::Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) return Value{message, field, -1}.text();
  std::vector<std::string> values;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    values.push_back(Value{message, field, i}.text());
  }
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string violation(std::string_view path, const pb::Message& message,
                      const FieldDescriptor& field) {
  if (!field.is_repeated()) {
    const Value value{message, field, -1};
    return is_allowed(value) ? "" : wrong_value(path, field, value.text());
  }
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    const Value value{message, field, i};
    if (!is_allowed(value)) return wrong_value(value_path(path, i), field, value.text());
  }
  return {};
}

pb::io::ErrorCollector& dropped_errors() {
  class Silence : public pb::io::ErrorCollector {
   public:
    void AddError(int, int, const std::string&) override {}
  };
  static Silence instance;  // has no state
  return instance;
}

}  // namespace lockstep::config
