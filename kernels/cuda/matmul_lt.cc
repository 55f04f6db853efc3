#include "kernels/cuda/matmul_lt.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "core/check.h"
#include "core/cuda/cublas_lt.h"
#include "core/cuda/runtime.h"
#include "core/environment_flag.h"
#include "core/kernel_scope.h"
#include "core/mix_bits.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// What NVIDIA advises for sm_90. An algorithm that needs less gets less.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;
/// No kernel of cuBLASLt asks for more than vectors of 16 bytes. A limit keeps a matrix's place in
/// larger memory, as in a gradient arena, from choosing the algorithm and with it the bits.
constexpr uintptr_t kMostAlignment = 16;
/// Of the ways to sum what is split along k, only this has an order of its own and rounds once.
constexpr uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
/// What an activation's argument must have a leading dimension in multiples of.
constexpr int64_t kAuxUnit = 8;
/// Geometries kept. A training step has some dozens.
constexpr size_t kMostPlans = 4096;

int64_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | kMostAlignment;
  return static_cast<int64_t>(bits & (~bits + 1));
}

std::optional<cudaDataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return std::nullopt;
  }
}

bool fits(int64_t value) { return value > 0 && value <= std::numeric_limits<int32_t>::max(); }

/// A factor of `rows` by `columns` here.
LtMatrix factor(const Factor& from, int64_t rows, int64_t columns, int64_t batch) {
  return {.rows = from.transposed ? rows : columns,
          .columns = from.transposed ? columns : rows,
          .ld = from.ld,
          .batch_stride = batch > 1 ? from.batch_stride : 0,
          .alignment = alignment_of(from.data)};
}

bool warns() {
  static const bool on = environment_flag("LOCKSTEP_WARN_COPIES");
  return on;
}

bool allows_tf32() {
  static const bool on = environment_flag("LOCKSTEP_ALLOW_TF32");
  return on;
}

/// A problem on one device, and what the library said to it. Never changed once it is made, and
/// its descriptors stay where they are.
struct Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
  cublasLtMatrixLayoutOpaque_t d{};
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
  bool found = false;
};

/// Descriptors are written with the functions of one library.
class Describer {
 public:
  explicit Describer(CublasLtLibrary& library)
      : library_(library), lt_(library.loaded().functions) {}

  /// `bias` and `aux` where the problem has them.
  void describe(cublasLtMatmulDescOpaque_t& operation, const LtProblem& p, const void* bias,
                const void* aux) const {
    const bool wide = p.dtype == DType::kF64;
    const cublasComputeType_t compute = wide     ? CUBLAS_COMPUTE_64F
                                        : p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
    check(lt_.cublasLtMatmulDescInit_internal(&operation, sizeof(operation), compute,
                                              wide ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescInit");
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, transpose(p.transpose_a));
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, transpose(p.transpose_b));
    if (p.has_epilogue()) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p));
    if (p.activation != LtActivation::kNone) {
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.d.ld);
    }
    if (!p.bias) return;
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        static_cast<int32_t>(data_type(p.result_dtype).value()));
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (p.batch > 1) set(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p.bias_stride);
  }

  void describe(cublasLtMatrixLayoutOpaque_t& layout, const LtProblem& p, const LtMatrix& m,
                DType dtype) const {
    check(lt_.cublasLtMatrixLayoutInit_internal(&layout, sizeof(layout), data_type(dtype).value(),
                                                static_cast<uint64_t>(m.rows),
                                                static_cast<uint64_t>(m.columns), m.ld),
          "cublasLtMatrixLayoutInit");
    if (p.batch == 1) return;
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(p.batch));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.batch_stride);
  }

  /// With what the library advises, if anything.
  void choose(Plan& plan, const LtProblem& p, cublasLtHandle_t handle) const {
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(lt_.cublasLtMatmulPreferenceInit_internal(&preference, sizeof(preference)),
          "cublasLtMatmulPreferenceInit");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
    const auto alignment = [&](cublasLtMatmulPreferenceAttributes_t which, const LtMatrix& m) {
      set(preference, which, static_cast<uint32_t>(m.alignment));
    };
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.a);
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.b);
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c);
    alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.d);

    cublasLtMatmulHeuristicResult_t results[8] = {};
    int count = 0;
    const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
        handle, &plan.operation, &plan.a, &plan.b, &plan.c, &plan.d, &preference,
        static_cast<int>(std::size(results)), results, &count);
    // Neither is worth ending a training run for: there is another way to the product.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return;
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    for (int i = 0; i < count; ++i) {
      if (results[i].state != CUBLAS_STATUS_SUCCESS || results[i].workspaceSize > kMostWorkspace) {
        continue;
      }
      plan.algorithm = results[i].algo;
      plan.workspace = results[i].workspaceSize;
      plan.found = true;
      return;
    }
  }

 private:
  static uint32_t epilogue(const LtProblem& p) {
    switch (p.activation) {
      case LtActivation::kGelu:
        return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      case LtActivation::kGeluBackward:
        return CUBLASLT_EPILOGUE_DGELU;
      case LtActivation::kNone:
        break;
    }
    return CUBLASLT_EPILOGUE_BIAS;
  }
  static int32_t transpose(bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; }

  void check(cublasStatus_t status, const char* function) const {
    library_.check(status, function);
  }
  template <class T>
  void set(cublasLtMatmulDescOpaque_t& to, cublasLtMatmulDescAttributes_t which, T value) const {
    check(lt_.cublasLtMatmulDescSetAttribute(&to, which, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }
  template <class T>
  void set(cublasLtMatrixLayoutOpaque_t& to, cublasLtMatrixLayoutAttribute_t which, T value) const {
    check(lt_.cublasLtMatrixLayoutSetAttribute(&to, which, &value, sizeof(value)),
          "cublasLtMatrixLayoutSetAttribute");
  }
  template <class T>
  void set(cublasLtMatmulPreferenceOpaque_t& to, cublasLtMatmulPreferenceAttributes_t which,
           T value) const {
    check(lt_.cublasLtMatmulPreferenceSetAttribute(&to, which, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }

  CublasLtLibrary& library_;
  const CublasLt& lt_;
};

/// The problem on one device with one library.
struct PlanKey {
  LtProblem problem;
  const CublasLtLibrary* library = nullptr;
  int device = 0;

  bool operator==(const PlanKey&) const = default;
};

struct PlanHash {
  size_t operator()(const PlanKey& key) const {
    const LtProblem& p = key.problem;
    uint64_t hash = std::bit_cast<uintptr_t>(key.library) + static_cast<uint64_t>(key.device);
    const auto add = [&](auto value) { hash = mix_bits(hash * 31 + static_cast<uint64_t>(value)); };
    add((static_cast<int>(p.dtype) << 5) | (p.tf32 << 4) | (p.transpose_a << 3) |
        (p.transpose_b << 2) | (p.adds_c << 1) | (p.bias << 0));
    add((static_cast<int>(p.result_dtype) << 2) | static_cast<int>(p.activation));
    for (const LtMatrix* m : {&p.a, &p.b, &p.d}) {
      add(m->rows);
      add(m->ld);
      add(m->batch_stride);
      add(m->alignment);
    }
    add(p.d.columns);
    add(p.batch);
    return hash;
  }
};

/// The plans made so far. All are forgotten when there are too many: the library gives the same
/// answer again.
class Plans {
 public:
  std::shared_ptr<const Plan> find(const PlanKey& key) {
    const std::shared_lock lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? nullptr : found->second;
  }
  void keep(const PlanKey& key, std::shared_ptr<const Plan> plan) {
    const std::unique_lock lock(mutex_);
    if (plans_.size() >= kMostPlans) plans_.clear();
    plans_.insert_or_assign(key, std::move(plan));
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<PlanKey, std::shared_ptr<const Plan>, PlanHash> plans_;
};

Plans& plans() {
  static auto* const instance = new Plans();
  return *instance;
}

std::shared_ptr<const Plan> plan_of(CublasLtLibrary& library, int device, const LtProblem& problem,
                                    const void* bias, const void* aux) {
  const PlanKey key{problem, &library, device};
  if (std::shared_ptr<const Plan> known = plans().find(key)) return known;
  const auto plan = std::make_shared<Plan>();
  const Describer describer(library);
  describer.describe(plan->operation, problem, bias, aux);
  describer.describe(plan->a, problem, problem.a, problem.dtype);
  describer.describe(plan->b, problem, problem.b, problem.dtype);
  describer.describe(plan->c, problem, problem.c, problem.result_dtype);
  describer.describe(plan->d, problem, problem.d, problem.result_dtype);
  describer.choose(*plan, problem, library.handle(device));
  plans().keep(key, plan);
  return plan;
}

/// The way that the library has an algorithm for.
struct Choice {
  AddendWay way = AddendWay::kNone;
  LtProblem problem;
  std::shared_ptr<const Plan> plan;  ///< null: there is none
};

Choice choose(CublasLtLibrary& library, int device, const Product& product,
              const LtEpilogue& epilogue) {
  const AddendWays ways = addend_ways(product);
  const auto attempt = [&](AddendWay way) -> Choice {
    const std::optional<LtProblem> problem = lt_problem(product, way, allows_tf32(), epilogue);
    if (!problem) return {};
    auto plan = plan_of(library, device, *problem, product.addend.data, epilogue.aux);
    return plan->found ? Choice{way, *problem, std::move(plan)} : Choice{};
  };
  Choice choice = attempt(ways.first);
  if (choice.plan == nullptr && ways.second != AddendWay::kNone) choice = attempt(ways.second);
  return choice;
}

void note_missing_library(const std::string& reason) {
  static const bool once = [&] {
    if (warns())
      fmt::print(stderr, "slow: matrix products on cuda are computed without cuBLASLt: {}\n",
                 reason);
    return true;
  }();
  (void)once;
}

void note_missing_algorithm(const Product& p) {
  static const bool once = [&] {
    if (warns()) {
      fmt::print(stderr,
                 "slow: cuBLASLt has no algorithm for a product [{}, {}] x [{}, {}] of {}, batch "
                 "{}: a kernel of Lockstep's computes it and others like it\n",
                 p.m, p.k, p.k, p.n, name(p.dtype), p.batch);
    }
    return true;
  }();
  (void)once;
}

}  // namespace

AddendWays addend_ways(const Product& p) {
  if (p.addend.data == nullptr || p.beta.to_double() == 0) return {};
  const bool in_lines = p.addend.column == 1 || p.n == 1;
  const bool batches = p.batch == 1 || p.addend.batch != 0;
  const bool rows_repeat = p.addend.row == 0 || p.m == 1;
  // In double, cuBLASLt has no epilogue.
  if (rows_repeat && in_lines && p.beta.to_double() == 1 && p.dtype != DType::kF64) {
    return {AddendWay::kBias, AddendWay::kSpread};
  }
  if (in_lines && batches && (p.addend.row >= p.n || p.m == 1)) return {AddendWay::kMatrix};
  return {AddendWay::kSpread};
}

std::optional<LtProblem> lt_problem(const Product& p, AddendWay way, bool tf32,
                                    const LtEpilogue& epilogue) {
  if (!data_type(p.dtype) || !fits(p.m) || !fits(p.n) || !fits(p.k) || !fits(p.batch)) {
    return std::nullopt;
  }
  const bool activates = epilogue.activation != LtActivation::kNone;
  // Beside an epilogue there is no place for another matrix.
  if (!epilogue.is_plain() && way != AddendWay::kNone && way != AddendWay::kBias) {
    return std::nullopt;
  }
  if (activates && (p.dtype == DType::kF64 || p.n % kAuxUnit != 0)) return std::nullopt;
  LtProblem problem;
  problem.dtype = p.dtype;
  problem.result_dtype = epilogue.result_dtype.value_or(p.dtype);
  problem.activation = epilogue.activation;
  problem.tf32 = tf32 && p.dtype == DType::kF32;
  problem.batch = p.batch;
  // Column-major, the result is its transpose: d = b a.
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
  problem.adds_c = way == AddendWay::kMatrix || way == AddendWay::kSpread;
  problem.bias = way == AddendWay::kBias;
  if (way == AddendWay::kMatrix) {
    problem.c.ld = p.m == 1 ? problem.d.ld : p.addend.row;
    problem.c.batch_stride = p.batch > 1 ? p.addend.batch : 0;
    problem.c.alignment = alignment_of(p.addend.data);
  } else if (way == AddendWay::kBias) {
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
    note_missing_library(loaded.reason);
    return false;
  }
  if (!data_type(p.dtype) || p.k == 0) return false;

  const Stream stream = kernel_stream();
  auto& runtime = runtime_of(stream.device);
  const ContextGuard guard(runtime.context(stream.device.index));
  const Choice choice = choose(library, stream.device.index, p, epilogue);
  if (choice.plan == nullptr) {
    if (epilogue.is_plain()) note_missing_algorithm(p);
    return false;
  }
  if (choice.way == AddendWay::kSpread) {
    Product spread = p;
    spread.k = 0;
    spread.alpha = 0;
    spread.beta = 1;
    multiply_by_tiles(spread);
  }

  // The library takes pointers to descriptors that it may change, but it does not.
  auto& plan = const_cast<Plan&>(*choice.plan);
  cublasLtMatmulDescOpaque_t with_addresses;
  cublasLtMatmulDesc_t operation = &plan.operation;
  if (choice.problem.has_epilogue()) {
    Describer(library).describe(with_addresses, choice.problem, p.addend.data, epilogue.aux);
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
  const void* const c = has_residual                       ? epilogue.residual
                        : choice.way == AddendWay::kMatrix ? p.addend.data
                                                           : p.result;
  const Workspace workspace(plan.workspace);
  library.check(loaded.functions.cublasLtMatmul(library.handle(stream.device.index), operation,
                                                factor_at(0), p.b.data, &plan.a, p.a.data, &plan.b,
                                                factor_at(1), c, &plan.c, p.result, &plan.d,
                                                &plan.algorithm, workspace.data(), plan.workspace,
                                                static_cast<cudaStream_t>(runtime.native(stream))),
                "cublasLtMatmul");
  return true;
}

}  // namespace lockstep::cuda
