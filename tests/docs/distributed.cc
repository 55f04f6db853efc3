// The C++ of docs/distributed.md.

#include <lockstep/lockstep.h>

#include <memory>

#include "dist/ddp/ddp.h"
#include "dist/group/mpi_group.h"
#include "dist/nccl/nccl_group.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep {
namespace documented {

void compute();
bool have_samples();
Tensor my_samples();
Tensor loss(const nn::Module& model, const Tensor& samples);

void all_reduce(const Tensor& gradient) {
#include "distributed/1.inc"
}

void uneven_data(const nn::Module& model, dist::Ddp& ddp, train::AdamW& optimizer, double rate,
                 std::unique_ptr<dist::ProcessGroup>& group) {
#include "distributed/2.inc"
#include "distributed/3.inc"
}

void communication_hook(nn::Module& model, std::unique_ptr<dist::ProcessGroup>& group) {
#include "distributed/4.inc"
}

void over_nccl(std::shared_ptr<dist::Communicator> communicator) {
#include "distributed/5.inc"
}

}  // namespace documented
}  // namespace lockstep
