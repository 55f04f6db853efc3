#pragma once

#include <source_location>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "core/base/current_scope.h"
#include "core/dispatch/packed_kernel.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/vjp.h"
#include "core/tensor/dispatch_key.h"

namespace lockstep {

class Operator;

/// A function pointer whose type has been forgotten; cast back before the call.
using AnyFunction = void (*)();
/// A kernel that sees any operator as a name and a stack.
using BoxedKernel = void (*)(const Operator& op, KeySet keys, Stack& stack);
/// Treats a batch in one call: the tensor arguments whose bit (by index in the schema) is set in
/// `batched` have a batch dimension in front, and so must every result have.
using BatchingRule = void (*)(const Operator& op, uint64_t batched, Stack& stack);
/// Additions and multiplications that a call took.
using FlopFormula = int64_t (*)(std::span<const Value> arguments, std::span<const Value> results);

/// The five kinds of operator; docs/dispatch.md says what each has.
enum class OpKind : uint8_t { kStructured, kView, kComposite, kDynamic, kHostValue };
std::string_view name(OpKind kind);

/// The forms that come from one structured operator.
enum class OpForm : uint8_t { kFunctional, kInPlace, kOut };

/// What autocast does with an operator's arguments.
enum class Autocast : uint8_t { kNone, kLowerPrecision, kF32, kPromote };
std::string_view name(Autocast autocast);

/// Functions made from an operator's C++ signature; how the untyped table and the typed caller
/// meet.
struct OpAdapters {
  AnyFunction missing = nullptr;     ///< throws: no kernel here
  AnyFunction boxed = nullptr;       ///< packs the arguments and calls the boxed kernel of the key
  AnyFunction direct = nullptr;      ///< calls the kernel of the key with the arguments as they are
  AnyFunction structured = nullptr;  ///< the wrapper of rule + kernel, for this form
  AnyFunction view = nullptr;        ///< aliases by the geometry function
  AnyFunction observed = nullptr;    ///< tells observers, then runs the entry below
  AnyFunction traced = nullptr;      ///< prints a line, then runs the entry it stands for
  void (*unbox)(const Operator&, KeySet, AnyFunction, Stack&) = nullptr;
  const std::type_info* kernel_type = nullptr;      ///< of kernels registered for a backend
  const std::type_info* functional_type = nullptr;  ///< of kernels registered for a functional key
  std::vector<Type> argument_types;                 ///< for the check against the schema
};

/// Source position of a registration, for errors that name both sides.
struct Site {
  const char* file = "";
  uint32_t line = 0;  ///< 0: `file` is a shared library
};
std::string to_string(Site site);

/// How a backend runs the kernel of a structured operator.
enum class Execution : uint8_t {
  kDirect,    ///< calls it; its work is done when it returns
  kPacked,    ///< calls it with packed arguments
  kQueued,    ///< queues the call on the device's current stream; the kernel is another backend's
  kLaunched,  ///< calls it; it launches its work on the device's current stream
  kShapes,    ///< runs none: tensors have shapes only
  kMissing,   ///< there is none: the call throws
};

/// What the dispatcher knows of a backend.
struct Backend {
  Execution execution = Execution::kDirect;  ///< of kernels with typed arguments
  /// A queued backend runs the kernels of this key where it has none of its own. A backend without
  /// kernels follows this key's requirements on strides.
  Key kernels_of = Key::kCPU;
};

/// Why a cell of an operator's table runs what it runs.
enum class Reason : uint8_t {
  kKernel,       ///< a typed or packed kernel
  kBoxedKernel,  ///< a boxed kernel of this operator
  kQueued,       ///< the kernel of another backend, queued
  kComposite,    ///< the composite's body
  kView,         ///< the geometry function
  kObserver,     ///< calls observers, then the cell below
  kShapes,       ///< the shape rule
  kMemory,       ///< the result is left as it was allocated
  kFallback,     ///< the boxed fallback of the key
  kMissing,      ///< nothing: the call throws
  kSkipped,      ///< nothing: the next key handles the call
};

/// What a call with one key as its highest runs, and why.
struct Cell {
  AnyFunction entry = nullptr;    ///< called with (op, keys, arguments...)
  AnyFunction kernel = nullptr;   ///< typed kernel that `entry` calls
  PackedKernel packed = nullptr;  ///< kernel with packed arguments that `entry` calls
  BoxedKernel boxed = nullptr;    ///< boxed kernel that `entry` calls
  void* data = nullptr;           ///< what boxed and packed kernels find at `kernel_data`
  Strides strides = Strides::kAny;
  Execution execution = Execution::kMissing;
  Reason reason = Reason::kMissing;
  Site site;  ///< where the kernel was registered
};

/// One kernel as registered; the newest at a key wins.
struct KernelRecord {
  uint64_t id = 0;
  Key key = Key::kCPU;
  AnyFunction function = nullptr;
  BoxedKernel boxed = nullptr;
  PackedKernel packed = nullptr;  ///< for structured operators, whatever their C++ signature
  void* data = nullptr;           ///< what boxed and packed kernels find at `kernel_data`
  const std::type_info* type = nullptr;
  Strides strides = Strides::kAny;
  bool fallthrough = false;  ///< no kernel: the key is skipped for this operator
  Site site;
};

/// An operator: schema, meaning, kernels and derivative. Made by `LS_OP`, found by name through
/// the Dispatcher. Reading is thread-safe once the program has started; registering at run time
/// must not overlap with calls of the same operator.
class Operator : public OperatorName {
 public:
  const Schema& schema() const { return schema_; }
  const std::string& doc() const { return doc_; }
  OpKind kind() const { return kind_; }
  OpForm form() const { return form_; }
  Autocast autocast() const { return root().autocast_; }
  const std::vector<std::string>& tags() const { return tags_; }
  /// Whether a call takes a number from a generator: an argument, or nondeterministic_seeded's.
  bool draws_random_numbers() const { return root().draws_random_numbers_; }
  /// Null when the block declares none.
  FlopFormula flops() const { return root().flops_; }
  const Derivative& derivative() const { return root().derivative_; }
  /// Null when the operator declares none.
  BatchingRule batching() const { return root().batching_; }
  void* batching_data() const { return root().batching_data_; }
  Site site() const { return site_; }
  bool is_defined() const { return defined_; }
  /// The functional form, which owns rule, kernels and derivative.
  const Operator& root() const { return *root_; }
  /// Whether results are left as they were allocated, so that no backend needs a kernel.
  bool allocates_only() const { return root().allocates_only_; }
  /// Whether `name_` exists: the kernel may then write where it reads its first argument.
  bool has_in_place() const { return root().has_in_place_; }

  /// Calls with arguments in schema order, every one given. Results land in `stack`.
  void call_boxed(Stack& stack) const;
  /// The same, with the key set decided by the caller.
  void redispatch_boxed(KeySet keys, Stack& stack) const {
    adapters_.unbox(*this, keys, table_[static_cast<int>(keys.highest())], stack);
  }
  /// Key set of a boxed call.
  KeySet keys_of(std::span<const Value> arguments) const;

  /// Why a call with `key` as highest key runs what it runs. In-place and out= forms give the
  /// reason of the functional form, whose kernels they use, unless they have a kernel of their own.
  Reason reason(Key key) const;
  /// The same in words: "kernel at file:line", "composite: its body", ...
  std::string explain(Key key) const;

  // For the dispatcher's own templates.
  AnyFunction entry(Key key) const { return table_[static_cast<int>(key)]; }
  KeySet mask() const { return mask_; }
  const Cell& cell(Key key) const { return cells_[static_cast<int>(key)]; }
  BoxedKernel boxed_kernel(Key key) const { return cell(key).boxed; }
  /// Newest typed kernel at a key, or null.
  AnyFunction kernel(Key key) const { return cell(key).kernel; }
  /// Newest kernel of a backend that takes packed arguments, where that is newer than any typed
  /// one; else null.
  PackedKernel packed_kernel(Key key) const { return cell(key).packed; }
  void* kernel_data(Key key) const { return cell(key).data; }
  AnyFunction definition() const { return root().definition_; }
  void* definition_data() const { return root().definition_data_; }
  /// Index of the tensor argument that the result is, for results of type `const Tensor&`.
  int alias_argument() const { return alias_argument_; }
  const OpAdapters& adapters() const { return adapters_; }
  /// Throws DispatchError: no kernel of this operator handles `keys`; lists those registered.
  [[noreturn]] void throw_missing(KeySet keys) const;
  [[noreturn]] void throw_undefined_argument() const;

 private:
  friend class Dispatcher;
  friend class OpDefinition;

  AnyFunction table_[kKeyCount] = {};  ///< the cells' entries; while dispatch is traced, the tracer
  KeySet mask_ = KeySet::all();
  Cell cells_[kKeyCount];
  OpAdapters adapters_;
  Operator* root_ = this;
  std::vector<Operator*> forms_;  ///< of a functional form: those that use its kernels
  int alias_argument_ = -1;
  AnyFunction definition_ = nullptr;  ///< shape rule, geometry function or composite body
  void* definition_data_ = nullptr;

  Schema schema_;
  std::string doc_;
  OpKind kind_ = OpKind::kStructured;
  OpForm form_ = OpForm::kFunctional;
  Autocast autocast_ = Autocast::kNone;
  FlopFormula flops_ = nullptr;
  Derivative derivative_;
  BatchingRule batching_ = nullptr;
  void* batching_data_ = nullptr;
  std::vector<std::string> tags_;
  std::vector<KernelRecord> records_;
  Site site_;
  bool defined_ = false;
  bool has_in_place_ = false;
  bool allocates_only_ = false;
  bool draws_random_numbers_ = false;
};

}  // namespace lockstep
