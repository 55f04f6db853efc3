#include "configs/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "configs/options.pb.h"
#include "core/nearest.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

/// Without it the parser prints to stderr.
class Silence : public pb::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

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

/// Names a user may give: enum values without the zero that stands for "not said", or accepted
/// texts.
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
  return is_integer(field) ? fmt::format("{}", static_cast<int64_t>(bound))
                           : fmt::format("{}", bound);
}

std::string number_kind(const FieldDescriptor& field) {
  if (field.options().GetExtension(power_of_two)) return "a power of two";
  return is_integer(field) ? "an integer" : "a number";
}

std::string interval_text(const FieldDescriptor& field) {
  if (!field.options().HasExtension(range)) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64
               ? fmt::format(" from 0 to {}", std::numeric_limits<uint64_t>::max())
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

double number_value(const pb::Message& message, const FieldDescriptor& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, &field);
    default:
      return reflection.GetDouble(message, &field);
  }
}

std::string value_text(const pb::Message& message, const FieldDescriptor& field) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

}  // namespace

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

std::string expected(const FieldDescriptor& field) {
  if (is_number(field)) return number_kind(field) + interval_text(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return "true or false";
  const std::vector<std::string_view> known = names(field);
  const bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (known.empty()) return text ? "text in quotes" : "{ ... }";
  return fmt::format(fmt::runtime(text ? "{}\"{}\"" : "{}{}"), known.size() > 1 ? "one of " : "",
                     fmt::join(known, text ? "\", \"" : ", "));
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
  return fmt::format("{} is {}: expected {}.{}", path, got, expected(field), hint);
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
    message.GetReflection()->SetString(&message, &field, std::string(text));
    return true;
  }
  Silence silence;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  // Parsed aside: the parser may store a value before it finds that more text follows.
  std::unique_ptr<pb::Message> fresh(message.New());
  if (!parser.ParseFieldValueFromString(std::string(text), &field, fresh.get())) return false;
  message.MergeFrom(*fresh);
  return true;
}

std::string violation(std::string_view path, const pb::Message& message,
                      const FieldDescriptor& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  const auto wrong = [&] { return wrong_value(path, field, value_text(message, field)); };
  if (is_number(field)) {
    const double value = number_value(message, field);
    if (!in_range(field, value)) return wrong();
    const bool power = field.options().GetExtension(power_of_two);
    if (power && !std::has_single_bit(static_cast<uint64_t>(value))) return wrong();
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const int number = reflection.GetEnumValue(message, &field);
    if (number == 0 || field.enum_type()->FindValueByNumber(number) == nullptr) return wrong();
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const std::vector<std::string_view> known = names(field);
    const std::string value = reflection.GetString(message, &field);
    if (!known.empty() && std::find(known.begin(), known.end(), value) == known.end()) {
      return wrong();
    }
  }
  return {};
}

}  // namespace lockstep::config
