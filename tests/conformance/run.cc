#include "tests/conformance/run.h"

#include <algorithm>
#include <optional>

#include "autograd/autograd.h"
#include "core/check.h"
#include "core/dispatcher.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/call_arguments.h"
#include "tests/conformance/elements.h"

namespace lockstep::conformance {

namespace {

using Kind = CaseValue::Kind;

/// What the case says does not hold; the message says what came instead.
class Disagreement : public Error {
 public:
  using Error::Error;
};

/// Results in order; a list counts each of its tensors.
std::vector<Value> call(const Operator& op, std::vector<Value>& arguments) {
  Stack stack(arguments);
  op.call_boxed(stack);
  std::vector<Value> results;
  for (Value& result : stack.results()) {
    if (result.is_tensor_list()) {
      for (Tensor& tensor : result.take_tensors()) results.emplace_back(std::move(tensor));
    } else {
      results.push_back(std::move(result));
    }
  }
  return results;
}

bool is_absent(const Value& value) {
  return value.is_none() || (value.is_tensor() && !value.tensor().defined());
}

void check_tensor(const std::string& what, const Value& got, const Tensor& want, DType dtype) {
  LS_CHECK(got.is_tensor() && got.tensor().defined(), conformance::Disagreement,
           "{}: expected a tensor, got {}", what, got.to_string());
  LS_CHECK(got.tensor().dtype() == dtype, conformance::Disagreement,
           "{}: dtype: expected {}, got {}", what, to_string(dtype),
           to_string(got.tensor().dtype()));
  if (const auto found = difference(got.tensor(), want)) {
    throw Disagreement(fmt::format("{}: {}", what, *found));
  }
}

Value number(const CaseValue& value) {
  if (value.kind == Kind::kBool) return value.integer != 0;
  if (value.kind == Kind::kInt) return value.integer;
  LS_CHECK(value.kind == Kind::kFloat, DataError, "an output must be a tensor, a number or null");
  return value.real;
}

void check_outputs(const std::vector<Value>& got, const Case& one, const CaseFile& file) {
  LS_CHECK(got.size() == one.outputs.size(), conformance::Disagreement,
           "expected {} outputs, got {}", one.outputs.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const CaseValue& want = one.outputs[i];
    const std::string what = fmt::format("output {}", i);
    if (want.kind == Kind::kNull) {
      LS_CHECK(is_absent(got[i]), conformance::Disagreement, "{}: expected nothing, got {}", what,
               got[i].to_string());
    } else if (want.kind == Kind::kTensor) {
      const std::optional<DType> dtype = parse_dtype(one.output_dtypes[i]);
      LS_CHECK(dtype.has_value(), DataError, "unknown dtype \"{}\"", one.output_dtypes[i]);
      check_tensor(what, got[i], file.tensor(want), *dtype);
    } else if (const auto found = difference(got[i], number(want))) {
      throw Disagreement(fmt::format("{}: {}", what, *found));
    }
  }
}

/// The stored cotangent in the dtype of its output.
Tensor cotangent_for(const Tensor& output, const Tensor& stored) {
  const Tensor cotangent = empty_tensor(stored.sizes(), output.dtype());
  set_elements(cotangent, elements_as<double>(stored));
  return cotangent;
}

void check_gradients(const Operator& op, const Case& one, const CaseFile& file) {
  std::vector<Value> arguments = call_arguments(op.schema(), one, file);
  std::vector<Tensor> inputs;
  for (const ExpectedGradient& gradient : one.gradients) {
    inputs.push_back(differentiated(op.schema(), arguments, gradient));
    inputs.back().set_requires_grad();
  }
  const std::vector<Value> results = call(op, arguments);
  check_outputs(results, one, file);

  std::vector<Tensor> outputs;
  std::vector<Tensor> cotangents;
  for (const auto& [index, value] : one.cotangents) {
    LS_CHECK(index < results.size(), DataError, "a cotangent for output {} of {}", index,
             results.size());
    outputs.push_back(results[index].tensor());
    cotangents.push_back(cotangent_for(outputs.back(), file.tensor(value)));
  }
  GradOptions options;
  options.allow_unused = true;
  const std::vector<Tensor> gradients = grad(outputs, inputs, cotangents, options);
  for (size_t i = 0; i < inputs.size(); ++i) {
    // No gradient at all is a gradient of zero.
    Tensor got = gradients[i];
    if (!got.defined()) {
      got = empty_tensor(inputs[i].sizes(), inputs[i].dtype());
      set_elements(got, std::vector<double>(static_cast<size_t>(got.numel()), 0.0));
    }
    const ExpectedGradient& want = one.gradients[i];
    std::string what = fmt::format("gradient of {}", want.keyword.empty()
                                                         ? op.schema().arguments[want.argument].name
                                                         : want.keyword);
    if (want.element) what += fmt::format("[{}]", *want.element);
    check_tensor(what, Value(got), file.tensor(want.value), inputs[i].dtype());
  }
}

/// What is wrong with one case, or nothing.
std::optional<std::string> failure_of(const Operator& op, const Case& one, const CaseFile& file) {
  try {
    std::vector<Value> arguments = call_arguments(op.schema(), one, file);
    check_outputs(call(op, arguments), one, file);
  } catch (const std::exception& error) {
    return error.what();
  }
  if (one.gradients.empty()) return std::nullopt;
  try {
    check_gradients(op, one, file);
  } catch (const std::exception& error) {
    return fmt::format("recorded: {}", error.what());
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> case_files(const std::filesystem::path& directory,
                                              const std::string& only) {
  std::error_code failed;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator it(directory, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->path().extension() != ".json") continue;
    if (only.empty() || it->path().stem() == only) paths.push_back(it->path());
  }
  LS_CHECK(!failed, DataError, "[conformance] cannot read {}: {}.", directory.string(),
           failed.message());
  LS_CHECK(!paths.empty(), DataError, "[conformance] {} has no {}.json.", directory.string(),
           only.empty() ? "<op>" : only);
  std::sort(paths.begin(), paths.end());
  return paths;
}

void run_file(const CaseFile& file, Report& report) {
  const Operator* op = dispatcher().find_or_null(file.op());
  if (op == nullptr) {
    report.skipped += file.cases().size();
    return;
  }
  Failure failure{file.op(), file.cases().size(), 0, 0, ""};
  for (size_t i = 0; i < file.cases().size(); ++i) {
    const std::optional<std::string> message = failure_of(*op, file.cases()[i], file);
    if (!message) continue;
    if (failure.failed++ == 0) {
      failure.first_case = i;
      failure.message = *message;
    }
  }
  report.passed += failure.cases - failure.failed;
  report.failed += failure.failed;
  if (failure.failed != 0) report.failures.push_back(std::move(failure));
}

}  // namespace

Report run_directory(const std::filesystem::path& directory, const std::string& only) {
  const std::string prefix = "aten::";
  Report report;
  for (const std::filesystem::path& path :
       case_files(directory, only.starts_with(prefix) ? only.substr(prefix.size()) : only)) {
    run_file(CaseFile(path), report);
  }
  return report;
}

}  // namespace lockstep::conformance
