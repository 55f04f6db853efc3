#include "tests/conformance/case_text.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/parse_json.h"
#include "core/base/parse_number.h"

namespace lockstep::conformance {

namespace {

using nlohmann::json;
using Kind = CaseValue::Kind;

double real_of(const json& number) {
  if (number.is_number()) return number.get<double>();
  const std::string text = number.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  LS_CHECK(text == "nan", DataError, "unknown number \"{}\"", text);
  return std::numeric_limits<double>::quiet_NaN();
}

/// Json::get would take fractions, and has undefined behaviour for numbers out of range.
template <class T>
T integer_of(const json& number) {
  const bool fits = number.is_number_unsigned()
                        ? std::in_range<T>(number.get<uint64_t>())
                        : number.is_number_integer() && std::in_range<T>(number.get<int64_t>());
  LS_CHECK(fits, DataError, "expected an integer in range, got {}", number.dump());
  return number.get<T>();
}

const json& list_of(const json& list) {
  LS_CHECK(list.is_array(), DataError, "expected a list, got {:.40}", list.dump());
  return list;
}

Dims dims_of(const json& list) {
  Dims dims;
  for (const json& item : list_of(list)) dims.push_back(integer_of<int64_t>(item));
  return dims;
}

CaseValue value_of(const json& source) {
  CaseValue value;
  if (source.is_null()) return value;
  if (source.is_array()) {
    value.kind = Kind::kList;
    for (const json& item : source) value.list.push_back(value_of(item));
    return value;
  }
  if (source.contains("tensor")) {
    value.kind = Kind::kTensor;
    value.text = source.at("tensor").get<std::string>();
    if (source.contains("size")) {
      const int64_t offset =
          source.contains("offset") ? integer_of<int64_t>(source.at("offset")) : 0;
      value.view = {dims_of(source.at("size")), dims_of(source.at("stride")), offset};
    }
  } else if (source.contains("bool")) {
    value.kind = Kind::kBool;
    value.integer = source.at("bool").get<bool>() ? 1 : 0;
  } else if (source.contains("int")) {
    value.kind = Kind::kInt;
    value.integer = integer_of<int64_t>(source.at("int"));
  } else if (source.contains("float")) {
    value.kind = Kind::kFloat;
    value.real = real_of(source.at("float"));
  } else {
    constexpr std::pair<const char*, Kind> kTexts[] = {
        {"str", Kind::kString}, {"dtype", Kind::kDType}, {"memory_format", Kind::kMemoryFormat}};
    for (const auto& [key, kind] : kTexts) {
      if (!source.contains(key)) continue;
      value.kind = kind;
      value.text = source.at(key).get<std::string>();
    }
    LS_CHECK(value.kind != Kind::kNull, DataError, "unknown value {}", source.dump());
  }
  return value;
}

ExpectedGradient gradient_of(const json& source) {
  ExpectedGradient gradient;
  const json& path = source.at("path");
  if (path.at(0).is_string()) {
    gradient.keyword = path.at(0).get<std::string>();
  } else {
    gradient.argument = integer_of<size_t>(path.at(0));
  }
  if (path.size() > 1) gradient.element = integer_of<size_t>(path.at(1));
  gradient.value = value_of(source.at("value"));
  return gradient;
}

Case case_of(const json& source) {
  Case one;
  for (const json& value : list_of(source.at("args"))) one.arguments.push_back(value_of(value));
  for (const auto& [name, value] : source.at("kwargs").items()) {
    one.keywords.emplace_back(name, value_of(value));
  }
  for (const json& value : list_of(source.at("outputs"))) one.outputs.push_back(value_of(value));
  for (const json& name : list_of(source.at("output_dtypes"))) {
    one.output_dtypes.push_back(name.is_null() ? "" : name.get<std::string>());
  }
  LS_CHECK(one.outputs.size() == one.output_dtypes.size(), DataError,
           "{} outputs, but {} output_dtypes", one.outputs.size(), one.output_dtypes.size());
  if (source.contains("cotangents")) {
    for (const auto& [index, value] : source.at("cotangents").items()) {
      const std::optional<size_t> output = parse_number<size_t>(index);
      LS_CHECK(output, DataError, "expected the index of an output, got {:?}", index);
      one.cotangents.emplace_back(*output, value_of(value));
    }
  }
  if (source.contains("grads")) {
    for (const json& gradient : list_of(source.at("grads")))
      one.gradients.push_back(gradient_of(gradient));
  }
  return one;
}

}  // namespace

RecordedCases parse_cases(std::string_view text, std::string_view origin) {
  try {
    const json source = parse_json(text);
    RecordedCases recorded;
    recorded.op = source.at("op").get<std::string>();
    if (recorded.op.starts_with("aten::")) recorded.op.erase(0, std::strlen("aten::"));
    for (const json& one : list_of(source.at("cases"))) recorded.cases.push_back(case_of(one));
    return recorded;
  } catch (const std::exception& error) {  // of the JSON library, or of a check above
    throw DataError(fmt::format("[conformance] {} is malformed: {}.", origin, error.what()));
  }
}

}  // namespace lockstep::conformance
