#include "tests/conformance/case_file.h"

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace lockstep::conformance {

namespace {

using nlohmann::json;
using Kind = CaseValue::Kind;

double real_of(const json& number) {
  if (!number.is_string()) return number.get<double>();
  const std::string text = number.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  LS_CHECK(text == "nan", DataError, "unknown number \"{}\"", text);
  return std::numeric_limits<double>::quiet_NaN();
}

Dims dims_of(const json& list) {
  Dims dims;
  for (const json& item : list) dims.push_back(item.get<int64_t>());
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
      value.view = {dims_of(source.at("size")), dims_of(source.at("stride")),
                    source.value("offset", int64_t{0})};
    }
  } else if (source.contains("bool")) {
    value.kind = Kind::kBool;
    value.integer = source.at("bool").get<bool>() ? 1 : 0;
  } else if (source.contains("int")) {
    value.kind = Kind::kInt;
    value.integer = source.at("int").get<int64_t>();
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
    gradient.argument = path.at(0).get<size_t>();
  }
  if (path.size() > 1) gradient.element = path.at(1).get<size_t>();
  gradient.value = value_of(source.at("value"));
  return gradient;
}

Case case_of(const json& source) {
  Case one;
  for (const json& value : source.at("args")) one.arguments.push_back(value_of(value));
  for (const auto& [name, value] : source.at("kwargs").items()) {
    one.keywords.emplace_back(name, value_of(value));
  }
  for (const json& value : source.at("outputs")) one.outputs.push_back(value_of(value));
  for (const json& name : source.at("output_dtypes")) {
    one.output_dtypes.push_back(name.is_null() ? "" : name.get<std::string>());
  }
  LS_CHECK(one.outputs.size() == one.output_dtypes.size(), DataError,
           "{} outputs, but {} output_dtypes", one.outputs.size(), one.output_dtypes.size());
  if (source.contains("cotangents")) {
    for (const auto& [index, value] : source.at("cotangents").items()) {
      one.cotangents.emplace_back(std::stoul(index), value_of(value));
    }
  }
  if (source.contains("grads")) {
    for (const json& gradient : source.at("grads")) one.gradients.push_back(gradient_of(gradient));
  }
  return one;
}

std::filesystem::path beside(std::filesystem::path path) {
  return path.replace_extension(".safetensors");
}

}  // namespace

CaseFile::CaseFile(const std::filesystem::path& json_path) : tensors_(beside(json_path)) {
  std::ifstream stream(json_path);
  LS_CHECK(stream.good(), DataError, "[conformance] cannot read {}.", json_path.string());
  try {
    const json source = json::parse(stream);
    op_ = source.at("op").get<std::string>();
    if (op_.starts_with("aten::")) op_.erase(0, std::strlen("aten::"));
    for (const json& one : source.at("cases")) cases_.push_back(case_of(one));
  } catch (const std::exception& error) {  // from the JSON library, or a malformed number
    throw DataError(
        fmt::format("[conformance] {} is malformed: {}.", json_path.string(), error.what()));
  }
}

Tensor CaseFile::tensor(const CaseValue& value) const {
  LS_CHECK(value.kind == Kind::kTensor, DataError, "[conformance] expected a tensor.");
  const train::TensorRecord& record = tensors_.at(value.text);
  Tensor stored = empty_tensor(record.shape, record.dtype);
  if (!record.bytes.empty()) std::memcpy(stored.data(), record.bytes.data(), record.bytes.size());
  if (!value.view) return stored;
  const CaseValue::View& view = *value.view;
  int64_t reach = count_elements(view.sizes) == 0 ? 0 : 1;
  for (size_t i = 0; reach != 0 && i < view.sizes.size(); ++i) {
    reach += (view.sizes[i] - 1) * view.strides[i];
  }
  LS_CHECK(view.sizes.size() == view.strides.size() && view.offset + reach <= stored.numel(),
           DataError, "[conformance] the view of {} leaves its storage of {} elements.", value.text,
           stored.numel());
  return alias_tensor(stored, view.sizes, view.strides, view.offset, record.dtype, false);
}

}  // namespace lockstep::conformance
