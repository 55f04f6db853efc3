// The graph that autograd records: each result points to the node that computed it, each node to
// the nodes that its gradients go to. The walk ends at AccumulateGrad, which adds to a leaf's grad.

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

namespace {

void walk(const Node& node, int depth) {
  std::printf("%*s%s\n", 2 * depth, "", node.name().c_str());
  for (const Edge& edge : node.next_edges()) {
    if (edge) {
      walk(*edge.node, depth + 1);
    } else {
      std::printf("%*s(requires no grad)\n", 2 * depth + 2, "");
    }
  }
}

}  // namespace

int main() {
  const Tensor x = randn({8, 256});
  const Tensor weight = randn({256, 10}).set_requires_grad();
  const Tensor bias = zeros({10}).set_requires_grad();

  const Tensor loss = addmm(bias, x, weight).sum();
  walk(*loss.grad_fn(), 0);  // addmm's edges: bias, x, weight

  loss.backward();
  std::printf("bias.grad: %s, each %g\n", to_string(bias.grad()).c_str(),
              bias.grad().select(0, 0).item<double>());
}
