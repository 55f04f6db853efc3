#include "kernels/cuda/matmul/matmul_lt_plan.h"

#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/mix_bits.h"
#include "core/base/mutex.h"
#include "core/base/shared_mutex.h"

namespace lockstep::cuda {

namespace {

/// NVIDIA's recommendation for sm_90. An algorithm that needs less gets less.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;
/// The only split-k reduction scheme that has a fixed order and rounds once.
constexpr uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
/// Most plans kept. A training step has a few dozen.
constexpr size_t kMostPlans = 4096;

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

/// Writes descriptors with the functions of one library.
class Describer {
 public:
  explicit Describer(CublasLtLibrary& library)
      : library_(library), lt_(library.loaded().functions) {}

  /// `bias` and `aux` are used if the problem has them.
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
    if (p.processors > 0) set(operation, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, p.processors);
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

  void describe(cublasLtMatmulPreferenceOpaque_t& preference, const LtProblem& p) const {
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
  }

  /// Chooses the first suitable algorithm that cuBLASLt's heuristics recommend, if any.
  void choose(LtPlan& plan, cublasLtMatmulPreferenceOpaque_t& preference,
              cublasLtHandle_t handle) const {
    cublasLtMatmulHeuristicResult_t results[8] = {};
    int count = 0;
    const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
        handle, &plan.operation, &plan.a, &plan.b, &plan.c, &plan.d, &preference,
        static_cast<int>(std::size(results)), results, &count);
    // These do not justify aborting a training run: our own kernel can compute the product.
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

/// A problem on one device with one library.
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
    add(p.processors);
    return hash;
  }
};

/// Cache of plans. Cleared when it is full, since the library makes the same choice again.
class Plans {
 public:
  std::shared_ptr<const LtPlan> find(const PlanKey& key) {
    const SharedLock lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? nullptr : found->second;
  }
  void keep(const PlanKey& key, std::shared_ptr<const LtPlan> plan) {
    const MutexLock lock(mutex_);
    if (plans_.size() >= kMostPlans) plans_.clear();
    plans_.insert_or_assign(key, std::move(plan));
  }

 private:
  SharedMutex mutex_;
  std::unordered_map<PlanKey, std::shared_ptr<const LtPlan>, PlanHash> plans_ LS_GUARDED_BY(mutex_);
};

Plans& plans() {
  static auto* const instance = new Plans();
  return *instance;
}

}  // namespace

std::shared_ptr<const LtPlan> lt_plan(CublasLtLibrary& library, int device,
                                      const LtProblem& problem, const void* bias, const void* aux) {
  const PlanKey key{problem, &library, device};
  if (std::shared_ptr<const LtPlan> known = plans().find(key)) return known;
  const auto plan = std::make_shared<LtPlan>();
  cublasLtMatmulPreferenceOpaque_t preference{};
  describe_problem(library, problem, bias, aux, *plan, preference);
  Describer(library).choose(*plan, preference, library.handle(device));
  plans().keep(key, plan);
  return plan;
}

void describe_problem(CublasLtLibrary& library, const LtProblem& problem, const void* bias,
                      const void* aux, LtPlan& plan, cublasLtMatmulPreferenceOpaque_t& preference) {
  const Describer describer(library);
  describer.describe(plan.operation, problem, bias, aux);
  describer.describe(plan.a, problem, problem.a, problem.dtype);
  describer.describe(plan.b, problem, problem.b, problem.dtype);
  describer.describe(plan.c, problem, problem.c, problem.result_dtype);
  describer.describe(plan.d, problem, problem.d, problem.result_dtype);
  describer.describe(preference, problem);
}

void describe_operation(CublasLtLibrary& library, const LtProblem& problem, const void* bias,
                        const void* aux, cublasLtMatmulDescOpaque_t& operation) {
  Describer(library).describe(operation, problem, bias, aux);
}

}  // namespace lockstep::cuda
