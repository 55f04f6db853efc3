#include "core/dispatch/dispatcher.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/nearest.h"
#include "core/base/process_exit.h"
#include "core/dispatch/dispatch_trace.h"

namespace lockstep {

namespace {

std::string_view strip_namespace(std::string_view name) {
  return name.starts_with("aten::") ? name.substr(6) : name;
}

/// Keys at which a composite's body runs when nothing else is registered: itself and all inside it.
constexpr KeySet kCompositeKeys = KeySet::below(Key::kAutograd) | KeySet(Key::kAutograd);

/// Whether autocast has anything to do with an operator: what in-place and out= forms are given
/// stays as it is.
bool takes_casts(const Operator& op) {
  return op.autocast() != Autocast::kNone && op.form() == OpForm::kFunctional &&
         !op.schema().is_mutable();
}

}  // namespace

Registration::~Registration() {
  // While the process ends, other threads may still call what was registered.
  if (id_ == 0 || process_exits()) return;
  if (id_ == kDefinition) {
    dispatcher().undefine(*op_);
  } else if (op_ != nullptr) {
    dispatcher().remove_kernel(op_, id_);
  } else {
    dispatcher().remove_fallback(fallback_);
  }
}

Dispatcher::Dispatcher() {
  for (int i = 0; i < kKeyCount; ++i) backends_[i].kernels_of = static_cast<Key>(i);
  backends_[static_cast<int>(Key::kMeta)] = {Execution::kShapes, Key::kCPU};
}

Dispatcher& dispatcher() {
  // Never destroyed: threads may call operators for as long as the process lives.
  static Dispatcher* const instance = new Dispatcher();
  return *instance;
}

Operator& Dispatcher::entry(std::string_view name) {
  const std::string key(strip_namespace(name));
  std::unique_ptr<Operator>& slot = operators_[key];
  if (slot == nullptr) {
    slot = std::make_unique<Operator>();
    slot->set_name(key);
  }
  return *slot;
}

const Operator* Dispatcher::find_or_null(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto found = operators_.find(std::string(strip_namespace(name)));
  return found != operators_.end() && found->second->defined_ ? found->second.get() : nullptr;
}

const Operator& Dispatcher::find(std::string_view name) const {
  if (const Operator* op = find_or_null(name)) return *op;
  std::vector<std::string_view> known;
  for (const Operator* op : operators()) known.push_back(op->name());
  const auto close = nearest(strip_namespace(name), known);
  throw DispatchError(
      fmt::format("[dispatcher] there is no operator \"{}\".{} `lockstep ops` lists all.", name,
                  close ? fmt::format(" Did you mean \"{}\"?", *close) : ""));
}

std::vector<const Operator*> Dispatcher::operators() const {
  const MutexLock lock(mutex_);
  std::vector<const Operator*> all;
  for (const auto& [name, op] : operators_) {
    if (op->defined_) all.push_back(op.get());
  }
  std::sort(all.begin(), all.end(),
            [](const Operator* a, const Operator* b) { return a->name() < b->name(); });
  return all;
}

void Dispatcher::check_kernel_type(const Operator& op, const KernelRecord& record) const {
  if (record.boxed != nullptr || record.fallthrough) return;
  if (record.packed != nullptr) {
    LS_CHECK(op.kind_ == OpKind::kStructured && op.form_ == OpForm::kFunctional, DispatchError,
             "[{}] the {} kernel at {} takes packed arguments: expected the functional form of a "
             "structured operator, got a {} one.",
             op.name(), name(record.key), to_string(record.site), name(op.kind_));
    return;
  }
  const bool for_backend = KeySet::backends().has(record.key);
  const std::type_info* const wanted =
      for_backend ? op.adapters_.kernel_type : op.adapters_.functional_type;
  LS_CHECK(*record.type == *wanted, DispatchError,
           "[{}] the {} kernel at {} has the wrong type: expected {}, got {}. The operator is "
           "defined at {}.",
           op.name(), name(record.key), to_string(record.site), wanted->name(), record.type->name(),
           to_string(op.site_));
}

Registration Dispatcher::register_kernel(std::string_view name, KernelRecord record) {
  const MutexLock lock(mutex_);
  Operator& op = entry(name);
  for (const KernelRecord& other : op.records_) {
    const bool again = other.key == record.key && other.site.line == record.site.line &&
                       std::string_view(other.site.file) == record.site.file;
    LS_CHECK(!again, DispatchError, "[{}] the {} kernel at {} is registered twice.", op.name(),
             lockstep::name(record.key), to_string(record.site));
  }
  record.id = next_id_++;
  if (op.defined_) check_kernel_type(op, record);
  op.records_.push_back(record);
  if (op.defined_) resolve_family(op);
  return Registration(&op, record.id);
}

void Dispatcher::remove_kernel(Operator* op, uint64_t id) {
  const MutexLock lock(mutex_);
  const auto is_it = [id](const KernelRecord& record) { return record.id == id; };
  if (std::erase_if(op->records_, is_it) == 0) {
    op = &entry(op->name());  // its definition went, and the record waits for the next one
    std::erase_if(op->records_, is_it);
  }
  if (op->defined_) resolve_family(*op);
}

void Dispatcher::undefine(Operator& op) {
  const MutexLock lock(mutex_);
  for (Operator* form : op.forms_) retire(*form);
  retire(op);
}

void Dispatcher::retire(Operator& op) {
  std::unique_ptr<Operator>& slot = operators_.at(op.name());
  retired_.push_back(std::exchange(slot, std::make_unique<Operator>()));
  slot->set_name(op.name());
  slot->records_ = std::exchange(op.records_, {});
  op.defined_ = false;
  op.definition_ = nullptr;
  op.derivative_ = {};
  op.derivative_.not_differentiable_reason = "it is defined no longer";
  op.batching_ = nullptr;
  resolve(op);
}

Registration Dispatcher::register_fallthrough(std::string_view name, Key key,
                                              std::source_location where) {
  LS_CHECK(!KeySet::backends().has(key), DispatchError,
           "[{}] the backend {} cannot be skipped: expected a functional key such as Autocast.",
           name, lockstep::name(key));
  KernelRecord record;
  record.key = key;
  record.fallthrough = true;
  record.site = {where.file_name(), where.line()};
  return register_kernel(name, record);
}

void Dispatcher::set_backend(Key key, Backend backend) {
  LS_CHECK(KeySet::backends().has(key) && backend.kernels_of <= key, DispatchError,
           "[dispatcher] {} cannot take the kernels of {}: expected a backend, and one before it.",
           lockstep::name(key), lockstep::name(backend.kernels_of));
  const MutexLock lock(mutex_);
  backends_[static_cast<int>(key)] = backend;
  KeySet changed = key;
  for (int i = static_cast<int>(key); KeySet::backends().has(static_cast<Key>(i)); ++i) {
    if (changed.has(backends_[i].kernels_of)) changed |= static_cast<Key>(i);
    if (changed.has(static_cast<Key>(i))) resolve_column(static_cast<Key>(i));
  }
}

Registration Dispatcher::register_fallback(Key key, Fallback fallback) {
  const MutexLock lock(mutex_);
  const int slot = static_cast<int>(key);
  LS_CHECK(!has_fallback_[slot], DispatchError,
           "[dispatcher] key {} already has a fallback: registered at {}, again at {}.",
           lockstep::name(key), to_string(fallbacks_[slot].site), to_string(fallback.site));
  fallbacks_[slot] = fallback;
  has_fallback_[slot] = true;
  resolve_column(key);
  return Registration(key, next_id_++);
}

void Dispatcher::remove_fallback(Key key) {
  const MutexLock lock(mutex_);
  has_fallback_[static_cast<int>(key)] = false;
  resolve_column(key);
}

void Dispatcher::resolve_family(Operator& op) {
  resolve(op);
  // The other forms use the kernels of this one.
  for (Operator* form : op.forms_) {
    if (form->defined_) resolve(*form);
  }
}

Cell Dispatcher::decide(const Operator& op, Key key) const {
  const int i = static_cast<int>(key);
  Cell cell;
  cell.entry = op.adapters_.missing;
  if (!op.defined_) return cell;
  const bool backend = KeySet::backends().has(key);
  const bool structured = op.kind_ == OpKind::kStructured;
  const bool functional = op.form_ == OpForm::kFunctional;
  const KernelRecord* newest = nullptr;
  for (const KernelRecord& record : op.records_) {
    if (record.key == key) newest = &record;
  }
  if (newest != nullptr && newest->fallthrough) {
    cell.reason = Reason::kSkipped;
    return cell;
  }
  if (newest != nullptr) {
    cell.kernel = newest->function;
    cell.packed = newest->packed;
    cell.boxed = newest->boxed;
    cell.data = newest->data;
    cell.strides = newest->strides;
    cell.site = newest->site;
  } else if (backend && structured && functional && backends_[i].kernels_of != key) {
    const Cell& source = op.cell(backends_[i].kernels_of);
    cell.strides = source.strides;
    if (backends_[i].execution == Execution::kQueued) {
      cell.kernel = source.kernel;
      cell.packed = source.packed;
      cell.data = source.data;
      cell.site = source.site;
    }
  }
  const bool has_kernel = cell.kernel != nullptr || cell.packed != nullptr;
  if (backend && backends_[i].execution == Execution::kShapes) {
    cell.execution = Execution::kShapes;
  } else if (backend && has_kernel) {
    const bool packed = cell.kernel == nullptr && backends_[i].execution != Execution::kQueued;
    cell.execution = packed ? Execution::kPacked : backends_[i].execution;
  }

  const auto runs = [&](AnyFunction entry, Reason reason) {
    cell.entry = entry;
    cell.reason = reason;
    return cell;
  };
  if (newest != nullptr) {
    if (cell.boxed != nullptr) return runs(op.adapters_.boxed, Reason::kBoxedKernel);
    // A typed kernel at a functional key is an entry itself: it gets the key set.
    if (!backend) return runs(cell.kernel, Reason::kKernel);
    // A kernel given to the in-place or out= form itself replaces the wrapper.
    const bool wrapped = structured && functional;
    return runs(wrapped ? op.adapters_.structured : op.adapters_.direct, Reason::kKernel);
  }
  if (op.kind_ == OpKind::kComposite && kCompositeKeys.has(key)) {
    return runs(op.adapters_.direct, Reason::kComposite);
  }
  if (backend && op.kind_ == OpKind::kView) return runs(op.adapters_.view, Reason::kView);
  if (key == Key::kObserver) return runs(op.adapters_.observed, Reason::kObserver);
  if (key == Key::kAutocast && !takes_casts(op)) {
    cell.reason = Reason::kSkipped;
    return cell;
  }
  if (backend && structured) {
    const Cell& kernels = functional ? cell : op.root_->cell(key);
    if (kernels.kernel != nullptr || kernels.packed != nullptr) {
      return runs(op.adapters_.structured, Reason::kQueued);
    }
    if (op.allocates_only()) return runs(op.adapters_.structured, Reason::kMemory);
    if (backends_[i].execution == Execution::kShapes) {
      return runs(op.adapters_.structured, Reason::kShapes);
    }
    // The wrapper reports that the kernel is missing, after the rule has checked the arguments.
    if (!has_fallback_[i]) return runs(op.adapters_.structured, Reason::kMissing);
  }
  if (has_fallback_[i] && fallbacks_[i].kernel != nullptr) {
    cell.boxed = fallbacks_[i].kernel;
    return runs(op.adapters_.boxed, Reason::kFallback);
  }
  if (!backend) cell.reason = Reason::kSkipped;
  return cell;
}

void Dispatcher::resolve(Operator& op) {
  // In this order: a cell may depend on that of a backend before it.
  for (int i = 0; i < kKeyCount; ++i) resolve(op, static_cast<Key>(i));
}

void Dispatcher::resolve(Operator& op, Key key) {
  const int i = static_cast<int>(key);
  op.cells_[i] = decide(op, key);
  // A backend without a kernel is not skipped, so that the call reports what is missing.
  const bool skipped = op.cells_[i].reason == Reason::kSkipped;
  op.table_[i] = traces_dispatch() && !skipped ? op.adapters_.traced : op.cells_[i].entry;
  op.mask_ = skipped ? op.mask_ - key : op.mask_ | key;
}

void Dispatcher::resolve_column(Key key) {
  for (const bool roots : {true, false}) {  // the other forms look at the cells of their root
    for (auto& [name, op] : operators_) {
      if (op->defined_ && (op->root_ == op.get()) == roots) resolve(*op, key);
    }
  }
}

std::string Dispatcher::dump(const Operator& op) const {
  std::string text;
  for (int i = kKeyCount - 1; i >= 0; --i) {
    text += fmt::format("  {:<14} {}\n", lockstep::name(static_cast<Key>(i)),
                        op.explain(static_cast<Key>(i)));
  }
  return text;
}

}  // namespace lockstep
