#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/dispatch/operator.h"

namespace lockstep {

/// Undoes one registration (a kernel, a fallback, an operator's definition) when it is destroyed.
/// Move-only.
class Registration {
 public:
  Registration() = default;
  Registration(Operator* op, uint64_t id) : op_(op), id_(id) {}
  explicit Registration(Operator* definition) : op_(definition), id_(kDefinition) {}
  Registration(Key fallback, uint64_t id) : fallback_(fallback), id_(id) {}
  Registration(Registration&& other) noexcept { swap(other); }
  Registration& operator=(Registration&& other) noexcept {
    Registration taken(std::move(other));  // after the swap, its destructor undoes the old one
    swap(taken);
    return *this;
  }
  ~Registration();

 private:
  void swap(Registration& other) noexcept {
    std::swap(op_, other.op_);
    std::swap(fallback_, other.fallback_);
    std::swap(id_, other.id_);
  }

  static constexpr uint64_t kDefinition = ~uint64_t{0};

  Operator* op_ = nullptr;
  Key fallback_ = Key::kCPU;
  uint64_t id_ = 0;  ///< 0: nothing to undo
};

/// What a key runs for operators that have no kernel registered at that key.
struct Fallback {
  BoxedKernel kernel = nullptr;  ///< null: the key is skipped (fallthrough)
  Site site;
};

/// The table of all operators. One per process. Look-up and registration are thread-safe;
/// registering must not overlap with calls of the same operator.
class Dispatcher {
 public:
  /// Returns the operator called "mm", "add.Tensor", "add_.Tensor", "mm.out", with or without
  /// "aten::". Throws DispatchError that suggests the nearest names when there is none.
  const Operator& find(std::string_view name) const;
  const Operator* find_or_null(std::string_view name) const;
  /// Every defined operator, sorted by name.
  std::vector<const Operator*> operators() const;

  /// Adds a kernel for an operator, which may be defined later. The newest wins; destroying the
  /// registration brings the one before back. Throws DispatchError when the function's type
  /// contradicts the operator's. A typed kernel for a functional key has the type
  /// R(const Operator&, KeySet keys, A...): it gets the call's key set and may pass the call on
  /// with TypedOp<R(A...)>(&op).redispatch(keys & KeySet::below(key), ...).
  Registration register_kernel(std::string_view op, KernelRecord record);
  /// Sets what `key` does for every operator without a kernel there. Throws DispatchError when
  /// the key already has a fallback, naming both sites.
  Registration register_fallback(Key key, Fallback fallback);

  /// Makes calls of one operator skip a functional key, whatever the key's fallback does. Throws
  /// DispatchError for a backend.
  Registration register_fallthrough(std::string_view op, Key key,
                                    std::source_location where = std::source_location::current());
  /// Says how the kernels of a backend run. By default they are called directly, and the backend
  /// has no other's kernels; kMeta knows shapes only. Call it once, before the backend's first
  /// call.
  void set_backend(Key key, Backend backend);

  /// One operator's table in words, a key a line, with the reason of each cell.
  std::string dump(const Operator& op) const;

 private:
  friend class Registration;
  friend class OpDefinition;
  friend Dispatcher& dispatcher();

  Dispatcher();
  Operator& entry(std::string_view name) LS_REQUIRES(mutex_);
  /// Fills in the tables of an operator and of its other forms.
  void resolve_family(Operator& op) LS_REQUIRES(mutex_);
  void resolve(Operator& op) LS_REQUIRES(mutex_);
  /// Fills in one cell of an operator's table.
  void resolve(Operator& op, Key key) LS_REQUIRES(mutex_);
  /// Fills in the cells of all operators at one key.
  void resolve_column(Key key) LS_REQUIRES(mutex_);
  /// What `op` runs at `key`, and why: the one place where that is decided.
  Cell decide(const Operator& op, Key key) const LS_REQUIRES(mutex_);
  void check_kernel_type(const Operator& op, const KernelRecord& record) const;
  void remove_kernel(Operator* op, uint64_t id);
  void remove_fallback(Key key);
  /// Removes an operator's definition and those of its other forms. References to them stay valid;
  /// calls through them throw. Kernels registered elsewhere are kept and apply to the next
  /// definition of the name.
  void undefine(Operator& op);
  void retire(Operator& op) LS_REQUIRES(mutex_);

  mutable RecursiveMutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Operator>> operators_ LS_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Operator>> retired_ LS_GUARDED_BY(mutex_);
  Fallback fallbacks_[kKeyCount] LS_GUARDED_BY(mutex_);
  Backend backends_[kKeyCount] LS_GUARDED_BY(mutex_);
  bool has_fallback_[kKeyCount] LS_GUARDED_BY(mutex_) = {};
  uint64_t next_id_ LS_GUARDED_BY(mutex_) = 1;
};

Dispatcher& dispatcher();

}  // namespace lockstep
