#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compile/row_places.h"

namespace lockstep::compiler {

class Interpreter;
class GroupKernel;

/// How a group of operators that work row by row runs (fuse_rows): all of them on some rows, then
/// on the next, with what they compute in between in the cache. Each operator's kernel computes the
/// rows, and runs of element-wise ones are groups of their own inside. Thread-safe;
/// `request_kernels` is called before others run it.
class RowGroup {
 public:
  /// `is_read_later` says of a value whether anything outside the group reads it. Throws Error for
  /// a node that does not work on rows of the others' length.
  /// Takes from `alike`, a group of the same calls for other sizes, what is equal; null for none.
  RowGroup(const Graph& graph, std::span<const Node> nodes, const std::vector<bool>& is_read_later,
           const RowGroup* alike = nullptr);
  ~RowGroup();
  RowGroup(const RowGroup&) = delete;
  RowGroup& operator=(const RowGroup&) = delete;

  /// Has kernels made for the element-wise groups inside.
  void request_kernels();
  std::vector<const GroupKernel*> kernels() const;

  /// Computes the values of the group that are read later. `values` holds its operands.
  void run(std::vector<Tensor>& values) const;

 private:
  /// A value outside of the group, by its number there.
  struct Bound {
    ValueId value;
    RowPlace place;
    ValueType type;
  };

  /// Some rows of the group.
  struct Tile {
    Graph nodes;  ///< before the passes
    std::shared_ptr<Interpreter> graph;
  };

  void find_operands(const Graph& graph, std::span<const Node> nodes,
                     const std::vector<bool>& is_read_later);
  /// The group's nodes on so many rows.
  Graph nodes_on(const Graph& graph, std::span<const Node> nodes, int64_t rows) const;
  static Tile make_tile(Graph nodes, const RowGroup* alike);
  /// `count` rows of a tensor from row `first` on.
  Tensor rows_of(const Tensor& tensor, const Bound& bound, int64_t first, int64_t count) const;
  void run_tile(const std::vector<Tensor>& values, int64_t first) const;

  RowPlaces places_;
  int64_t tile_rows_ = 0;
  std::vector<Bound> operands_;
  std::vector<Bound> results_;
  Tile whole_;                ///< of tile_rows_ rows
  std::optional<Tile> rest_;  ///< of the last ones, unless whole tiles cover all
};

}  // namespace lockstep::compiler
