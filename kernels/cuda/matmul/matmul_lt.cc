#include "kernels/cuda/matmul/matmul_lt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/cuda/runtime.h"
#include "core/device/kernel_scope.h"
#include "core/device/slow_paths.h"
#include "core/device/spared_processors.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/matmul_lt_plan.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// Alignment is reported to cuBLASLt up to 16 bytes, the widest vectors its kernels use. Without a
/// cap, a matrix's position in a larger allocation, such as a gradient arena, would influence the
/// choice of algorithm and with it the bits.
constexpr uintptr_t kMostAlignment = 16;
/// The leading dimension of an activation's auxiliary matrix must be a multiple of this.
constexpr int64_t kAuxUnit = 8;

int64_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | kMostAlignment;
  return static_cast<int64_t>(bits & (~bits + 1));
}

bool fits(int64_t value) { return value > 0 && value <= std::numeric_limits<int32_t>::max(); }

/// Describes a factor that is `rows` by `columns` in row-major terms.
LtMatrix factor(const Factor& from, int64_t rows, int64_t columns, int64_t batch) {
  return {.rows = from.transposed ? rows : columns,
          .columns = from.transposed ? columns : rows,
          .ld = from.ld,
          .batch_stride = batch > 1 ? from.batch_stride : 0,
          .alignment = alignment_of(from.data)};
}

bool allows_tf32() {
  static const bool on = environment_flag("LOCKSTEP_ALLOW_TF32");
  return on;
}

/// The dtype of a product's result, addend and activation.
DType result_dtype(const Product& p, const LtEpilogue& epilogue) {
  return epilogue.result_dtype.value_or(p.wide ? DType::kF32 : p.dtype);
}

/// The multiprocessors that are not spared; 0 if none are.
int32_t processors_for_products(int device) {
  const int spared = spared_processors();
  if (spared == 0) return 0;
  const Device gpu{DeviceType::kCUDA, static_cast<int8_t>(device)};
  const int all =
      runtime_of(gpu).context(device).attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return std::max(all - spared, 1);
}

/// The strategy for the addend for which the library has an algorithm.
struct Choice {
  AddendStrategy strategy = AddendStrategy::kNone;
  LtProblem problem;
  std::shared_ptr<const LtPlan> plan;  ///< null if there is none
};

Choice choose(CublasLtLibrary& library, int device, const Product& product,
              const LtEpilogue& epilogue) {
  const AddendStrategies strategies = addend_strategies(product);
  const auto attempt = [&](AddendStrategy strategy) -> Choice {
    std::optional<LtProblem> problem = lt_problem(product, strategy, allows_tf32(), epilogue);
    if (!problem) return {};
    problem->processors = processors_for_products(device);
    auto plan = lt_plan(library, device, *problem, product.addend.data, epilogue.aux);
    return plan->found && !plan->refused ? Choice{strategy, *problem, std::move(plan)} : Choice{};
  };
  Choice choice = attempt(strategies.first);
  if (choice.plan == nullptr && strategies.second != AddendStrategy::kNone) {
    choice = attempt(strategies.second);
  }
  return choice;
}

/// "products of bfloat16 into float32 with a bias and a residual"
std::string kind_of(const Product& p, const LtEpilogue& epilogue) {
  std::string text = fmt::format("products of {}", name(p.dtype));
  const DType result = result_dtype(p, epilogue);
  if (result != p.dtype) text += fmt::format(" into {}", name(result));
  std::vector<const char*> with;
  if (addend_strategies(p).first == AddendStrategy::kBias) with.push_back("a bias");
  if (epilogue.activation == LtActivation::kGelu) with.push_back("a gelu");
  if (epilogue.activation == LtActivation::kGeluBackward) with.push_back("the slope of a gelu");
  if (epilogue.residual != nullptr) with.push_back("a residual");
  if (!with.empty()) text += fmt::format(" with {}", fmt::join(with, " and "));
  return text;
}

void count_missing_algorithm(const Product& p, const LtEpilogue& epilogue, size_t version,
                             const char* instead) {
  count_slow_path(kind_of(p, epilogue), [&] {
    return fmt::format("cuBLASLt {} has no algorithm for [{}, {}] x [{}, {}], batch {}: {}",
                       version_text(version), p.m, p.k, p.k, p.n, p.batch, instead);
  });
}

/// Queues a product as it was chosen. If the library does not support it after all, nothing is
/// queued but the copy of a spread addend.
cublasStatus_t launch_choice(CublasLtLibrary& library, const Stream& stream, const Product& p,
                             const LtEpilogue& epilogue, const Choice& choice) {
  if (choice.strategy == AddendStrategy::kSpread) {
    Product spread = p;
    spread.k = 0;
    spread.alpha = 0;
    spread.beta = 1;
    multiply_by_tiles(spread);
  }

  // The API takes non-const descriptors but does not modify them.
  auto& plan = const_cast<LtPlan&>(*choice.plan);
  cublasLtMatmulDescOpaque_t with_addresses;
  cublasLtMatmulDesc_t operation = &plan.operation;
  if (choice.problem.has_epilogue()) {
    describe_operation(library, choice.problem, p.addend.data, epilogue.aux, with_addresses);
    operation = &with_addresses;
  }
  const bool has_residual = epilogue.residual != nullptr;
  const double beta = has_residual ? 1 : choice.problem.adds_c ? p.beta.to_double() : 0;
  const double wide[2] = {p.alpha.to_double(), beta};
  const float narrow[2] = {static_cast<float>(wide[0]), static_cast<float>(wide[1])};
  const bool is_wide = p.dtype == DType::kF64;
  const auto factor_at = [&](int i) -> const void* {
    return is_wide ? static_cast<const void*>(wide + i) : narrow + i;
  };
  const void* const c = has_residual                                 ? epilogue.residual
                        : choice.strategy == AddendStrategy::kMatrix ? p.addend.data
                                                                     : p.result;
  const Workspace workspace(plan.workspace);
  return library.loaded().functions.cublasLtMatmul(
      library.handle(stream.device.index), operation, factor_at(0), p.b.data, &plan.a, p.a.data,
      &plan.b, factor_at(1), c, &plan.c, p.result, &plan.d, &plan.algorithm, workspace.data(),
      plan.workspace, static_cast<cudaStream_t>(runtime_of(stream.device).native(stream)));
}

}  // namespace

AddendStrategies addend_strategies(const Product& p) {
  if (p.addend.data == nullptr || p.beta.to_double() == 0) return {};
  const bool in_lines = p.addend.column == 1 || p.n == 1;
  const bool batches = p.batch == 1 || p.addend.batch != 0;
  const bool rows_repeat = p.addend.row == 0 || p.m == 1;
  // cuBLASLt has no epilogues in f64.
  if (rows_repeat && in_lines && p.beta.to_double() == 1 && p.dtype != DType::kF64) {
    return {AddendStrategy::kBias, AddendStrategy::kSpread};
  }
  if (in_lines && batches && (p.addend.row >= p.n || p.m == 1)) return {AddendStrategy::kMatrix};
  return {AddendStrategy::kSpread};
}

std::optional<LtProblem> lt_problem(const Product& p, AddendStrategy strategy, bool tf32,
                                    const LtEpilogue& epilogue) {
  if (!is_floating(p.dtype) || !fits(p.m) || !fits(p.n) || !fits(p.k) || !fits(p.batch)) {
    return std::nullopt;
  }
  const bool activates = epilogue.activation != LtActivation::kNone;
  // With an epilogue there is no operand left for another addend matrix.
  if (!epilogue.is_plain() && strategy != AddendStrategy::kNone &&
      strategy != AddendStrategy::kBias) {
    return std::nullopt;
  }
  if (activates && (p.dtype == DType::kF64 || p.n % kAuxUnit != 0)) return std::nullopt;
  LtProblem problem;
  problem.dtype = p.dtype;
  problem.result_dtype = result_dtype(p, epilogue);
  problem.activation = epilogue.activation;
  problem.tf32 = tf32 && p.dtype == DType::kF32;
  problem.batch = p.batch;
  // cuBLASLt is column-major, so it computes the transposed result: d^T = b^T a^T.
  problem.transpose_a = p.b.transposed;
  problem.transpose_b = p.a.transposed;
  problem.a = factor(p.b, p.k, p.n, p.batch);
  problem.b = factor(p.a, p.m, p.k, p.batch);
  problem.d = {.rows = p.n,
               .columns = p.m,
               .ld = std::max(p.ld, p.n),
               .batch_stride = p.batch > 1 ? p.batch_stride : 0,
               .alignment = alignment_of(p.result)};
  problem.c = problem.d;
  problem.adds_c = strategy == AddendStrategy::kMatrix || strategy == AddendStrategy::kSpread;
  problem.bias = strategy == AddendStrategy::kBias;
  if (strategy == AddendStrategy::kMatrix) {
    problem.c.ld = p.m == 1 ? problem.d.ld : p.addend.row;
    problem.c.batch_stride = p.batch > 1 ? p.addend.batch : 0;
    problem.c.alignment = alignment_of(p.addend.data);
  } else if (strategy == AddendStrategy::kBias) {
    problem.bias_stride = p.batch > 1 ? p.addend.batch : 0;
    problem.bias_alignment = alignment_of(p.addend.data);
  }
  if (epilogue.residual != nullptr) {
    problem.adds_c = true;
    problem.c.alignment = alignment_of(epilogue.residual);
  }
  if (activates) problem.aux_alignment = alignment_of(epilogue.aux);
  return problem;
}

bool multiply_by_cublas_lt(const Product& p, const LtEpilogue& epilogue) {
  CublasLtLibrary& library = cublas_lt();
  const LoadedCublasLt& loaded = library.loaded();
  if (!loaded.reason.empty()) {
    count_slow_path("matrix products on cuda", [&] { return loaded.reason; });
    return false;
  }
  if (!is_floating(p.dtype) || p.k == 0) return false;

  const Stream stream = kernel_stream();
  const ContextGuard guard(runtime_of(stream.device).context(stream.device.index));
  for (;;) {
    const Choice choice = choose(library, stream.device.index, p, epilogue);
    if (choice.plan == nullptr) {
      count_missing_algorithm(p, epilogue, loaded.version,
                              epilogue.is_plain() ? "a kernel of Lockstep's computes it"
                                                  : "the rest is a pass over the product");
      return false;
    }
    const cublasStatus_t status = launch_choice(library, stream, p, epilogue, choice);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
      choice.plan->refused = true;
      continue;
    }
    library.check(status, "cublasLtMatmul");
    if (choice.strategy != addend_strategies(p).first) {
      count_missing_algorithm(p, epilogue, loaded.version, "the bias is copied to its rows first");
    }
    return true;
  }
}

}  // namespace lockstep::cuda
