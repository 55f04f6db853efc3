#include "nn/containers.h"

#include "core/base/check.h"
#include "nn/class_name.h"

namespace lockstep::nn {

void detail::throw_other_class(const Module& module) {
  throw Error(fmt::format("[module] \"{}\" is of another class than was asked for: it is a {}.",
                          module.path(), class_name(module)));
}

namespace {

void check_index(const char* container, size_t index, size_t size) {
  LS_CHECK(index < size, IndexError, "[{}] there is no module {}: expected less than {}.",
           container, index, size);
}

}  // namespace

void Sequential::push_back(std::string_view name, Layer layer) {
  register_module(name, layer.module());
  layers_.push_back(std::move(layer));
}

Tensor Sequential::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        Tensor value = input;
        for (const Layer& layer : layers_) value = layer.forward(value);
        return value;
      },
      x);
}

Module& Sequential::operator[](size_t index) const {
  check_index("sequential", index, layers_.size());
  return layers_[index].module();
}

void ModuleList::append(std::unique_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), *module);
  modules_.push_back(std::move(module));
}

Module& ModuleList::operator[](size_t index) const {
  check_index("module_list", index, modules_.size());
  return *modules_[index];
}

void ModuleDict::add(std::string_view name, std::unique_ptr<Module> module) {
  register_module(name, *module);
  modules_.push_back({std::string(name), std::move(module)});
}

Module* ModuleDict::find(std::string_view name) const {
  for (const Entry& entry : modules_) {
    if (entry.name == name) return entry.module.get();
  }
  return nullptr;
}

std::vector<std::string> ModuleDict::keys() const {
  std::vector<std::string> names;
  for (const Entry& entry : modules_) names.push_back(entry.name);
  return names;
}

Module& ModuleDict::operator[](std::string_view name) const {
  Module* const found = find(name);
  LS_CHECK(found != nullptr, Error, "[module_dict] there is no module \"{}\": expected one of {}.",
           name, fmt::join(keys(), ", "));
  return *found;
}

}  // namespace lockstep::nn
