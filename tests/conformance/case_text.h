#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/shape.h"

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

/// What `<op>.json` records.
struct RecordedCases {
  std::string op;  ///< name of the operator, without "aten::"
  std::vector<Case> cases;
};

/// Parses the text of `<op>.json`. Throws DataError naming `origin` if it is malformed.
RecordedCases parse_cases(std::string_view text, std::string_view origin);

}  // namespace lockstep::conformance
