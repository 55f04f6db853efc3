#include "core/plugin/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/process_exit.h"
#include "core/dispatch/op.h"
#include "core/plugin/graph_passes.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

constexpr uint32_t kOldestVersion = 1;

/// A copy of the path that is never freed: records of unloaded operators still refer to it.
const char* interned(const std::string& path) {
  static Mutex mutex;
  static auto* const paths LS_PT_GUARDED_BY(mutex) = new std::set<std::string>();
  const MutexLock lock(mutex);
  return paths->insert(path).first->c_str();
}

class LibraryHandle {
 public:
  explicit LibraryHandle(const std::string& path)
      : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    LS_CHECK(handle_ != nullptr, DispatchError, "[plugin] {}: cannot be loaded: {}.", path,
             ::dlerror());
  }
  ~LibraryHandle() { ::dlclose(handle_); }
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;

  void* symbol(const std::string& path, const char* name) const {
    void* const found = ::dlsym(handle_, name);
    LS_CHECK(found != nullptr, DispatchError,
             "[plugin] {}: no plug-in: expected it to export {}, got nothing of that name. See "
             "core/plugin/plugin_abi.h.",
             path, name);
    return found;
  }

 private:
  void* handle_;
};

std::string existing(const std::filesystem::path& path) {
  std::error_code failure;
  LS_CHECK(std::filesystem::is_regular_file(path, failure), DataError,
           "[plugin] {}: no such file: expected a shared library.", path.string());
  // Absolute, because dlopen searches the system's folders for a name without a slash.
  return std::filesystem::canonical(path).string();
}

/// Plug-ins cannot define views: only the host's own views share memory and version counters.
void check_not_a_view(const ls_op& op) {
  for (size_t i = 0; i < op.schema.returns.size(); ++i) {
    const Return& result = op.schema.returns[i];
    LS_CHECK(
        result.alias == 0 || op.schema.written_alias(i) >= 0, DispatchError,
        "[plugin] {}: result {} of {} would be a view of an argument, and kernels get memory "
        "of their own to fill: {}. Give the operator a body made of views (as_strided, select, "
        "...), which share memory and are recorded, or let it return a copy.",
        op.plugin->library, i, op.schema.full_name(), op.schema.to_string());
  }
}

/// Checks an operator whose kernels make the results.
void check_dynamic(const ls_op& op) {
  const std::string name = op.schema.full_name();
  const char* library = op.plugin->library;
  LS_CHECK(!op.rule && !op.batching && !op.in_place && !op.out, DispatchError,
           "[plugin] {}: the kernels of {} make its results: expected no rule, batching rule or "
           "other form besides: {}.",
           library, name, op.schema.to_string());
  LS_CHECK(!op.schema.is_mutable(), DispatchError,
           "[plugin] {}: {} changes an argument, and its kernels make the results: expected one or "
           "the other: {}. Make two operators of it.",
           library, name, op.schema.to_string());
  for (size_t i = 0; i < op.schema.returns.size(); ++i) {
    const Type& type = op.schema.returns[i].type;
    LS_CHECK(type == Type{} || is_number(type), DispatchError,
             "[plugin] {}: result {} of {} must be a Tensor or a number: {}. Give the operator a "
             "body for anything else.",
             library, i, name, op.schema.to_string());
  }
  LS_CHECK(!op.derivative || !returns_numbers(op.schema), DispatchError,
           "[plugin] {}: {} has a derivative, and its results are numbers, which carry no "
           "gradient: expected a tensor among them: {}.",
           library, name, op.schema.to_string());
}

void check(const ls_op& op) {
  const std::string name = op.schema.full_name();
  const char* library = op.plugin->library;
  if (op.body) {
    LS_CHECK(!op.rule && op.kernels.empty() && !op.derivative && !op.in_place && !op.out,
             DispatchError,
             "[plugin] {}: {} has a body, which autograd looks into: expected no rule, kernel, "
             "derivative or other form besides.",
             library, name);
    return;
  }
  check_not_a_view(op);
  if (op.dynamic) return check_dynamic(op);
  LS_CHECK(op.rule, DispatchError,
           "[plugin] {}: {} has no shape rule: expected set_rule or set_body, or set_dynamic where "
           "kernels make the results.",
           library, name);
  for (size_t i = 0; i < op.schema.returns.size(); ++i) {
    const Return& result = op.schema.returns[i];
    LS_CHECK(result.type == Type{} && (result.alias == 0 || op.schema.written_alias(i) >= 0),
             DispatchError,
             "[plugin] {}: result {} of {} must be a Tensor, fresh or a Tensor(a!) argument: {}. "
             "set_dynamic allows numbers besides, and a body anything.",
             library, i, name, op.schema.to_string());
  }
  const bool takes_forms =
      op.schema.returns.size() == 1 && !op.schema.is_mutable() &&
      (!op.in_place || (!op.schema.arguments.empty() && op.schema.arguments[0].type == Type{}));
  LS_CHECK(takes_forms || (!op.in_place && !op.out), DispatchError,
           "[plugin] {}: {} cannot have the form asked for: expected one fresh result and, in "
           "place, a tensor as first argument: {}.",
           library, name, op.schema.to_string());
  const bool writes_its_result = op.schema.returns.size() == 1 && op.schema.written_alias(0) >= 0;
  LS_CHECK(!op.derivative || !op.schema.is_mutable() || writes_its_result, DispatchError,
           "[plugin] {}: {} changes an argument and has a derivative: expected that argument to "
           "be its only result: {}.",
           library, name, op.schema.to_string());
}

KernelRecord record(const PluginKernel& kernel, bool dynamic) {
  KernelRecord record;
  record.key = kernel.key;
  if (dynamic) {
    record.boxed = &plugin_entry::dynamic_kernel;
    record.data = const_cast<PluginKernel*>(&kernel);
  } else {
    record.packed = &plugin_entry::kernel;
    record.data = const_cast<PluginFunction*>(&kernel.function);
  }
  record.strides = kernel.strides;
  record.site = {kernel.function.library, 0};
  return record;
}

}  // namespace

struct Plugin::Library {
  explicit Library(const std::string& where) : path(where), handle(path) {
    plugin.library = interned(path);
  }
  ~Library() {
    // In reverse order: a plug-in may override an operator that it defines itself.
    while (!registrations.empty()) registrations.pop_back();
  }

  /// Throws an error with the library's path for everything that the host rejects.
  void register_all() {
    using Init = int (*)(const ls_host*, ls_plugin*);
    const auto init = reinterpret_cast<Init>(handle.symbol(path, "ls_plugin_init"));
    try {
      run_plugin_init(init, plugin);
      for (const auto& op : plugin.operators) define(*op);
      for (const auto& wanted : plugin.overrides) override_kernel(wanted);
      passes = register_passes(plugin);
    } catch (const DispatchError& error) {
      const std::string_view message = error.what();
      if (message.find(path) != std::string_view::npos) throw;
      throw DispatchError(fmt::format("[plugin] {}: {}", path, message));
    }
  }

 private:
  void define(ls_op& op) {
    check(op);
    OpDefinition definition(op.text, {plugin.library, 0});
    registrations.push_back(definition.registration());
    op.defined = definition.op();
    definition.doc(op.doc);
    definition.data(&op);
    if (op.body) {
      definition.kind(OpKind::kComposite, reinterpret_cast<AnyFunction>(&plugin_entry::body),
                      boxed_adapters(op.schema));
    } else if (op.dynamic) {
      definition.kind(returns_numbers(op.schema) ? OpKind::kHostValue : OpKind::kDynamic, nullptr,
                      boxed_adapters(op.schema));
    } else {
      definition.kind(OpKind::kStructured, reinterpret_cast<AnyFunction>(&plugin_entry::rule),
                      boxed_adapters(op.schema));
    }
    defined.push_back(definition.op()->name());
    if (op.in_place) add_form(definition, OpForm::kInPlace, op.schema);
    if (op.out) add_form(definition, OpForm::kOut, op.schema);
    definition.autocast(op.autocast);
    for (const std::string& save : op.saves) definition.saves({save});
    if (op.derivative) definition.derivative(&plugin_entry::derivative);
    definition.derivative_data(&op);
    const bool numbers = op.dynamic && returns_numbers(op.schema);
    definition.not_differentiable(numbers && op.not_differentiable_reason.empty()
                                      ? "its results are numbers, which carry no gradient"
                                      : op.not_differentiable_reason);
    if (op.batching) definition.batching(&plugin_entry::batching, &op);
    for (const PluginKernel& kernel : op.kernels) {
      registrations.push_back(
          dispatcher().register_kernel(definition.op()->name(), record(kernel, op.dynamic)));
    }
  }

  void add_form(OpDefinition& definition, OpForm form, const Schema& schema) {
    OpAdapters adapters = boxed_adapters(schema);
    std::optional<std::string> overload;
    if (form == OpForm::kOut) {
      adapters.argument_types.push_back({BaseType::kTensor});
      overload = schema.overload.empty() ? "out" : schema.overload + "_out";
    }
    defined.push_back(definition.form(form, overload, std::move(adapters))->name());
  }

  void override_kernel(const ls_plugin::Override& wanted) {
    registrations.push_back(dispatcher().register_kernel(wanted.op, record(wanted.kernel, false)));
    overridden.push_back(wanted.op);
  }

 public:
  std::string path;
  LibraryHandle handle;  // closed last
  uint32_t version = 0;
  ls_plugin plugin;
  std::vector<std::string> defined;
  std::vector<std::string> overridden;
  std::vector<Registration> registrations;
  std::shared_ptr<void> passes;
};

Plugin load_library(const std::string& path) {
  auto library = std::make_unique<Plugin::Library>(existing(path));
  const std::string& where = library->path;
  library->version =
      *static_cast<const uint32_t*>(library->handle.symbol(where, "ls_plugin_abi_version"));
  LS_CHECK(library->version >= kOldestVersion && library->version <= LS_PLUGIN_ABI_VERSION,
           DispatchError,
           "[plugin] {}: made for version {} of the plug-in ABI: expected {} to {}. {}", where,
           library->version, kOldestVersion, LS_PLUGIN_ABI_VERSION,
           library->version > LS_PLUGIN_ABI_VERSION
               ? "Use a newer Lockstep, or compile it against this one's headers."
               : "Compile it anew.");
  library->register_all();
  note_exit();
  return Plugin(std::move(library));
}

Plugin::Plugin(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Plugin::Plugin(Plugin&& other) noexcept = default;
Plugin& Plugin::operator=(Plugin&& other) noexcept = default;
Plugin::~Plugin() {
  // Other threads may still be in its operators: while the process ends, it stays loaded.
  if (process_exits()) (void)library_.release();
}

const std::string& Plugin::path() const { return library_->path; }
uint32_t Plugin::abi_version() const { return library_->version; }
const std::vector<std::string>& Plugin::defined() const { return library_->defined; }
const std::vector<std::string>& Plugin::overridden() const { return library_->overridden; }

}  // namespace lockstep
