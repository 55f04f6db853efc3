// The blocks of docs/compile.md.

#include "compile/decompose.h"
#include "compile/graph/graph.h"
#include "lockstep/lockstep.h"

namespace lockstep {

void example(const Tensor& x) {
#include "compile/1.inc"
}

void sizes() {
#include "compile/2.inc"
}

void reads() {
#include "compile/3.inc"
}

void rows() {
#include "compile/4.inc"
}

void cuda_graphs(const Tensor& weight) {
#include "compile/5.inc"
}

void passes() {
#include "compile/6.inc"
}

void plugin_passes() {
#include "compile/7.inc"
}

void written_out() {
#include "compile/8.inc"
}

}  // namespace lockstep
