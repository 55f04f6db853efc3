#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "train/weights/safetensors.h"

namespace lockstep::conformance {

/// A value as stored in a case file: tagged, but not yet converted to a type of a schema.
struct CaseValue {
  enum class Kind : uint8_t {
    kNull,
    kBool,
    kInt,
    kFloat,
    kString,
    kDType,
    kMemoryFormat,
    kTensor,
    kList,
  };

  Kind kind = Kind::kNull;
  int64_t integer = 0;          ///< kBool (0 or 1) and kInt
  double real = 0;              ///< kFloat
  std::string text;             ///< kString, name of a kDType or kMemoryFormat, key of a kTensor
  std::vector<CaseValue> list;  ///< kList

  /// For kTensor: a strided view of the flat storage in the file.
  struct View {
    Dims sizes;
    Dims strides;
    int64_t offset = 0;
  };
  std::optional<View> view;
};

/// Expected gradient of one argument.
struct ExpectedGradient {
  size_t argument = 0;            ///< position in the call; unused when `keyword` is set
  std::string keyword;            ///< name of a keyword argument
  std::optional<size_t> element;  ///< index in a list argument
  CaseValue value;
};

/// One recorded call and its results.
struct Case {
  std::vector<CaseValue> arguments;
  std::vector<std::pair<std::string, CaseValue>> keywords;
  std::vector<CaseValue> outputs;
  std::vector<std::string> output_dtypes;                ///< "" for results that are no tensors
  std::vector<std::pair<size_t, CaseValue>> cotangents;  ///< by index of the output
  std::vector<ExpectedGradient> gradients;
};

/// A case file: `<op>.json` and the `<op>.safetensors` next to it.
class CaseFile {
 public:
  /// Throws DataError naming the file when it is malformed, or CheckpointError for the tensors'
  /// file.
  explicit CaseFile(const std::filesystem::path& json_path);

  /// Name of the operator, without "aten::".
  const std::string& op() const { return op_; }
  const std::vector<Case>& cases() const { return cases_; }
  /// Makes a new CPU tensor, a leaf. Strided views get their own storage. Throws DataError when the
  /// value is no tensor or exceeds its storage.
  Tensor tensor(const CaseValue& value) const;

 private:
  std::string op_;
  std::vector<Case> cases_;
  train::SafetensorsFile tensors_;
};

}  // namespace lockstep::conformance
