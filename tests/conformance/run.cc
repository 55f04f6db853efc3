#include "tests/conformance/run.h"

#include <algorithm>
#include <optional>

#include "autograd/autograd.h"
#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/dispatch/cpu_fallback.h"
#include "core/dispatch/dispatcher.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/call_arguments.h"
#include "tests/conformance/compiled.h"
#include "tests/conformance/elements.h"
#include "tests/conformance/meta_geometry.h"
#include "tests/conformance/recorded_call.h"
#include "tests/conformance/second_derivatives.h"

namespace lockstep::conformance {

namespace {

using Kind = CaseValue::Kind;

bool is_absent(const Value& value) {
  return value.is_none() || (value.is_tensor() && !value.tensor().defined());
}

void check_tensor(const std::string& what, const Value& got, const Tensor& want, DType dtype) {
  LS_CHECK(got.is_tensor() && got.tensor().defined(), conformance::Disagreement,
           "{}: expected a tensor, got {}", what, got.to_string());
  LS_CHECK(got.tensor().dtype() == dtype, conformance::Disagreement,
           "{}: dtype: expected {}, got {}", what, to_string(dtype),
           to_string(got.tensor().dtype()));
  if (const auto found = difference(moved_to(kCPU, got.tensor()), want)) {
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

/// The stored cotangent, cast to the dtype of its output.
Tensor cotangent_for(const Tensor& output, const Tensor& stored) {
  const Tensor cotangent = empty_tensor(stored.sizes(), output.dtype(), kCPU);
  set_elements(cotangent, elements_as<double>(stored));
  return moved_to(output.device(), cotangent);
}

void check_gradients(const Operator& op, const Case& one, const CaseFile& file, Device device) {
  std::vector<Value> arguments =
      on_device(op.schema(), call_arguments(op.schema(), one, file), device);
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
    // An undefined gradient counts as zero.
    Tensor got = gradients[i];
    if (!got.defined()) {
      got = empty_tensor(inputs[i].sizes(), inputs[i].dtype(), kCPU);
      set_elements(got, std::vector<double>(static_cast<size_t>(got.numel()), 0.0));
    }
    const ExpectedGradient& want = one.gradients[i];
    const std::string what = "gradient of " + gradient_name(op.schema(), want);
    check_tensor(what, Value(got), file.tensor(want.value), inputs[i].dtype());
  }
}

/// Outcome of one case. Members are in order of precedence.
struct Outcome {
  std::string failure;  ///< what differs; empty: nothing
  std::string reason;   ///< why it was skipped or checked only in part; empty: fully checked
  bool skipped = false;
};

/// Message of the exception that `body` throws, after `what`, or "".
template <class Body>
std::string failure_in(const char* what, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return std::string(what) + error.what();
  }
  return "";
}

Outcome outcome_on_meta(const Operator& op, const Case& one, const CaseFile& file) {
  Outcome outcome;
  outcome.failure = failure_in("", [&] {
    if (const auto reason = check_geometry(op, one, file)) outcome = {"", *reason, true};
  });
  return outcome;
}

Outcome outcome_in_values(const Operator& op, const Case& one, const CaseFile& file,
                          const RunOptions& options) {
  const DefaultDeviceGuard guard(options.device);
  Outcome outcome;
  outcome.failure = failure_in("", [&] {
    std::vector<Value> arguments =
        on_device(op.schema(), call_arguments(op.schema(), one, file), options.device);
    check_outputs(call(op, arguments), one, file);
  });
  if (outcome.failure.empty() && options.compiled) {
    outcome.failure = failure_in("", [&] {
      const std::string reason = check_compiled(op, one, file, options.device);
      if (!reason.empty()) outcome.reason = "not compiled: " + reason;
    });
  }
  if (!outcome.failure.empty() || one.gradients.empty()) return outcome;
  outcome.failure =
      failure_in("recorded: ", [&] { check_gradients(op, one, file, options.device); });
  if (!outcome.failure.empty() || !options.double_backward) return outcome;
  outcome.failure = failure_in("second derivatives: ", [&] {
    const SecondDerivatives second = check_second_derivatives(op, one, file, options.device);
    if (!second.reason.empty()) outcome.reason = "second derivatives: " + second.reason;
    outcome.skipped = !second.checked;
  });
  return outcome;
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

void run_file(const CaseFile& file, const RunOptions& options, Report& report) {
  const Operator* op = dispatcher().find_or_null(file.op());
  if (op == nullptr) {
    report.skipped += file.cases().size();
    report.reasons["not registered"][file.op()] += file.cases().size();
    return;
  }
  Failure failure{file.op(), file.cases().size(), 0, 0, ""};
  for (size_t i = 0; i < file.cases().size(); ++i) {
    const Case& one = file.cases()[i];
    const Outcome outcome = options.device == kMeta ? outcome_on_meta(*op, one, file)
                                                    : outcome_in_values(*op, one, file, options);
    if (!outcome.failure.empty()) {
      ++report.failed;
      if (failure.failed++ == 0) {
        failure.first_case = i;
        failure.message = outcome.failure;
      }
      continue;
    }
    if (!outcome.reason.empty()) ++report.reasons[outcome.reason][file.op()];
    ++(outcome.skipped ? report.skipped : report.passed);
  }
  if (failure.failed != 0) report.failures.push_back(std::move(failure));
}

}  // namespace

Report run_directory(const std::filesystem::path& directory, const RunOptions& options) {
  const int devices = device_count(options.device.type);
  LS_CHECK(options.device.index < devices, DeviceError,
           "[conformance] nothing runs on {}: there are {} devices of its type.",
           to_string(options.device), devices);
  LS_CHECK(options.device != kMeta || !options.double_backward, DeviceError,
           "[conformance] second derivatives are of values, which meta has not: use the cpu.");
  LS_CHECK(options.device != kMeta || !options.compiled, DeviceError,
           "[conformance] compiled functions are compared by their values, which meta has not: use "
           "the cpu.");
  const std::map<std::string, int64_t> before = cpu_fallback_calls();
  constexpr std::string_view kPrefix = "aten::";
  std::string only = options.only;
  if (only.starts_with(kPrefix)) only.erase(0, kPrefix.size());
  Report report;
  for (const std::filesystem::path& path : case_files(directory, only)) {
    run_file(CaseFile(path), options, report);
  }
  report.fallbacks = cpu_fallback_calls();
  for (const auto& [op, calls] : before) {
    if ((report.fallbacks[op] -= calls) == 0) report.fallbacks.erase(op);
  }
  return report;
}

}  // namespace lockstep::conformance
