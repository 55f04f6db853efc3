#include "core/dispatch/dispatcher.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/nearest.h"
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
  if (id_ == 0) return;
  if (id_ == kDefinition) {
    dispatcher().undefine(*op_);
  } else if (op_ != nullptr) {
    dispatcher().remove_kernel(op_, id_);
  } else {
    dispatcher().remove_fallback(fallback_);
  }
}

Dispatcher& dispatcher() {
  // Leaked: registrations with static storage duration are undone after any static destructor.
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
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  std::vector<const Operator*> all;
  for (const auto& [name, op] : operators_) {
    if (op->defined_) all.push_back(op.get());
  }
  std::sort(all.begin(), all.end(),
            [](const Operator* a, const Operator* b) { return a->name() < b->name(); });
  return all;
}

void Dispatcher::check_kernel_type(const Operator& op, const KernelRecord& record) const {
  if (record.boxed != nullptr) return;
  if (record.packed != nullptr) {
    LS_CHECK(op.kind_ == OpKind::kStructured && op.form_ == OpForm::kFunctional, DispatchError,
             "[{}] the {} kernel at {} takes packed arguments: expected the functional form of a "
             "structured operator, got a {} one.",
             op.name(), name(record.key), to_string(record.site), name(op.kind_));
    return;
  }
  const bool for_backend = KeySet::backends().has(record.key);
  const std::type_info* wanted = for_backend ? op.adapters_.kernel_type : op.adapters_.signature;
  LS_CHECK(*record.type == *wanted, DispatchError,
           "[{}] the {} kernel at {} has the wrong type: expected {}, got {}. The operator is "
           "defined at {}.",
           op.name(), name(record.key), to_string(record.site), wanted->name(), record.type->name(),
           to_string(op.site_));
}

Registration Dispatcher::register_kernel(std::string_view name, KernelRecord record) {
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  const auto is_it = [id](const KernelRecord& record) { return record.id == id; };
  if (std::erase_if(op->records_, is_it) == 0) {
    op = &entry(op->name());  // its definition went, and the record waits for the next one
    std::erase_if(op->records_, is_it);
  }
  if (op->defined_) resolve_family(*op);
}

void Dispatcher::undefine(Operator& op) {
  const std::lock_guard lock(mutex_);
  std::vector<Operator*> family;
  for (const auto& [name, other] : operators_) {
    if (other->root_ == &op) family.push_back(other.get());
  }
  for (Operator* other : family) retire(*other);
}

void Dispatcher::retire(Operator& op) {
  std::unique_ptr<Operator>& slot = operators_.at(op.name());
  retired_.push_back(std::exchange(slot, std::make_unique<Operator>()));
  slot->set_name(op.name());
  slot->records_ = std::exchange(op.records_, {});
  op.defined_ = false;
  op.definition_ = nullptr;
  op.derivative_ = {};
  op.derivative_.reason_for_none = "it is defined no longer";
  op.batching_ = nullptr;
  resolve(op);
}

Registration Dispatcher::register_fallback(Key key, Fallback fallback) {
  const std::lock_guard lock(mutex_);
  const int slot = static_cast<int>(key);
  LS_CHECK(!has_fallback_[slot], DispatchError,
           "[dispatcher] key {} already has a fallback: registered at {}, again at {}.",
           lockstep::name(key), to_string(fallbacks_[slot].site), to_string(fallback.site));
  fallbacks_[slot] = fallback;
  has_fallback_[slot] = true;
  for (auto& [name, op] : operators_) {
    if (op->defined_) resolve(*op);
  }
  return Registration(key, next_id_++);
}

void Dispatcher::remove_fallback(Key key) {
  const std::lock_guard lock(mutex_);
  has_fallback_[static_cast<int>(key)] = false;
  for (auto& [name, op] : operators_) {
    if (op->defined_) resolve(*op);
  }
}

void Dispatcher::resolve_family(Operator& op) {
  resolve(op);
  // The other forms use the kernels of this one.
  for (auto& [name, other] : operators_) {
    if (other->defined_ && other->root_ == &op && other.get() != &op) resolve(*other);
  }
}

void Dispatcher::resolve(Operator& op) {
  KeySet handled;
  for (int i = 0; i < kKeyCount; ++i) {
    const Key key = static_cast<Key>(i);
    op.table_[i] = op.adapters_.missing;
    op.boxed_[i] = nullptr;
    op.kernels_[i] = nullptr;
    op.packed_[i] = nullptr;
    op.kernel_data_[i] = nullptr;
    const KernelRecord* newest = nullptr;
    for (const KernelRecord& record : op.records_) {
      if (record.key == key) newest = &record;
    }
    const bool backend = KeySet::backends().has(key);
    if (!op.defined_) {
      op.table_[i] = op.adapters_.missing;
      handled |= key;
      continue;
    }
    const bool queued = key == Key::kHost && newest == nullptr && op.kind_ == OpKind::kStructured &&
                        op.form_ == OpForm::kFunctional;
    if (queued) {
      // The host device runs the cpu's kernels; core/dispatch/structured.h queues them.
      constexpr int kSource = static_cast<int>(Key::kCPU);
      op.kernels_[i] = op.kernels_[kSource];
      op.packed_[i] = op.packed_[kSource];
      op.strides_[i] = op.strides_[kSource];
      op.kernel_data_[i] = op.kernel_data_[kSource];
    }
    if (newest != nullptr) op.kernel_data_[i] = newest->data;
    if (newest != nullptr && newest->boxed != nullptr) {
      op.boxed_[i] = newest->boxed;
      op.table_[i] = op.adapters_.boxed;
    } else if (newest != nullptr) {
      op.kernels_[i] = newest->function;
      op.packed_[i] = newest->packed;
      op.strides_[i] = newest->strides;
      // A kernel given to the in-place or out= form itself replaces the wrapper.
      const bool wrapped =
          backend && op.kind_ == OpKind::kStructured && op.form_ == OpForm::kFunctional;
      op.table_[i] = wrapped ? op.adapters_.structured : op.adapters_.direct;
    } else if (op.kind_ == OpKind::kComposite && kCompositeKeys.has(key)) {
      op.table_[i] = op.adapters_.direct;
    } else if (backend && op.kind_ == OpKind::kView) {
      op.table_[i] = op.adapters_.view;
    } else if (key == Key::kObserver) {
      op.table_[i] = op.adapters_.observed;
    } else if (key == Key::kAutocast && !takes_casts(op)) {
      continue;
    } else if (backend && op.kind_ == OpKind::kStructured &&
               (op.root_->kernels_[i] != nullptr || op.root_->packed_[i] != nullptr ||
                op.allocates_only() || !has_fallback_[i])) {
      // The wrapper itself reports a backend without a kernel; meta needs none.
      op.table_[i] = op.adapters_.structured;
    } else if (has_fallback_[i] && fallbacks_[i].kernel != nullptr) {
      op.boxed_[i] = fallbacks_[i].kernel;
      op.table_[i] = op.adapters_.boxed;
    } else if (!backend) {
      continue;  // nobody listens here: the key is skipped
    }
    handled |= key;
  }
  // Backends stay in the mask even without a kernel, so that the call reports what is missing.
  op.mask_ = handled | KeySet::backends();
  if (!traces_dispatch()) return;
  for (int i = 0; i < kKeyCount; ++i) {
    op.traced_[i] = std::exchange(op.table_[i], op.adapters_.traced);
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
