#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/owned_module.h"

namespace lockstep::nn {

/// Calls layers one after the other. Owns them; their names are "0", "1", ..., or as given:
///
///   nn::Sequential net(nn::Linear(3, 8), nn::ReLU(), nn::Linear(8, 1));
///   Tensor y = net.forward(x);
///
/// Accepts every module with `Tensor forward(const Tensor&)`, also a Sequential, and functions
/// through Functional.
class Sequential : public Module {
 public:
  Sequential() = default;
  template <class... Layers>
  requires(sizeof...(Layers) > 0) && NotOnly<Sequential, Layers...> &&
      (std::constructible_from<Layer, Layers&&> && ...) explicit Sequential(Layers&&... layers) {
    (push_back(std::forward<Layers>(layers)), ...);
  }
  Sequential(Sequential&&) noexcept = default;

  void push_back(Layer layer) { push_back(std::to_string(size()), std::move(layer)); }
  /// Throws Error if the name is taken.
  void push_back(std::string_view name, Layer layer);

  Tensor forward(const Tensor& x) const;

  size_t size() const { return layers_.size(); }
  /// Throws IndexError for a layer that there is not.
  Module& operator[](size_t index) const;
  /// The layer as its class: `net.at<nn::Linear>(0).weight`. Throws Error if it is another class.
  template <std::derived_from<Module> M>
  M& at(size_t index) const {
    return as<M>((*this)[index]);
  }

 private:
  std::vector<Layer> layers_;
};

/// Modules in a list, which a model calls as it likes. Owns them; their names are "0", "1", ....
class ModuleList : public Module {
 public:
  ModuleList() = default;
  template <class... Modules>
  requires(sizeof...(Modules) > 0) && NotOnly<ModuleList, Modules...> &&
      (MovableModule<Modules> && ...) explicit ModuleList(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  ModuleList(ModuleList&&) noexcept = default;

  /// Appends a module, and returns it where it is now.
  template <MovableModule M>
  M& push_back(M&& module) {
    return push_back(std::make_unique<M>(std::move(module)));
  }
  template <std::derived_from<Module> M>
  M& push_back(std::unique_ptr<M> module) {
    M& added = *module;
    append(std::move(module));
    return added;
  }

  size_t size() const { return modules_.size(); }
  /// Throws IndexError for a module that there is not.
  Module& operator[](size_t index) const;
  /// The module as its class. Throws Error if it is another.
  template <std::derived_from<Module> M>
  M& at(size_t index) const {
    return as<M>((*this)[index]);
  }

 private:
  void append(std::unique_ptr<Module> module);

  std::vector<std::unique_ptr<Module>> modules_;
};

/// Modules by name, in the order in which they were inserted. Owns them.
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  ModuleDict(ModuleDict&&) noexcept = default;

  /// Adds a module, and returns it where it is now. Throws Error if the name is taken.
  template <MovableModule M>
  M& insert(std::string_view name, M&& module) {
    return insert(name, std::make_unique<M>(std::move(module)));
  }
  template <std::derived_from<Module> M>
  M& insert(std::string_view name, std::unique_ptr<M> module) {
    M& added = *module;
    add(name, std::move(module));
    return added;
  }

  size_t size() const { return modules_.size(); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  std::vector<std::string> keys() const;
  /// Throws Error that lists the names there are.
  Module& operator[](std::string_view name) const;
  /// The module as its class. Throws Error if it is another.
  template <std::derived_from<Module> M>
  M& at(std::string_view name) const {
    return as<M>((*this)[name]);
  }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Module> module;
  };
  void add(std::string_view name, std::unique_ptr<Module> module);
  Module* find(std::string_view name) const;

  std::vector<Entry> modules_;
};

/// A function as a layer, without parameters: Functional([](const Tensor& x) { return x * 2; }).
class Functional : public Module {
 public:
  explicit Functional(std::function<Tensor(const Tensor&)> function)
      : function_(std::move(function)) {}
  Tensor forward(const Tensor& x) const { return run_forward(function_, x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

}  // namespace lockstep::nn
