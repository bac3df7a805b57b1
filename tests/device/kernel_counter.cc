#include "kernel_counter.h"

#include <ATen/ATen.h>

#include <array>

namespace braid::fake_gpu {
namespace {

// An operation of ops.h that is running.
struct Operation {
  std::string name;
  std::int64_t bytes;  // not yet counted with a kernel
};

struct Counted {
  std::vector<CountsKernels::Started> kernels;
  std::vector<Operation> running;
};

thread_local Counted* counting = nullptr;

bool is_ours(const at::RecordFunction& op) {
  return std::string_view(op.name()).starts_with("braid::");
}

// Products and attention have more than one size (ops/record.h).
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (!counting || !is_ours(op)) return nullptr;
  const auto sizes = op.inputs();
  counting->running.push_back({op.name(), sizes.size() == 1 ? sizes[0].toInt() : 0});
  return nullptr;
}

void end(const at::RecordFunction& op, at::ObserverContext*) {
  if (counting && is_ours(op) && !counting->running.empty()) counting->running.pop_back();
}

bool is_product(const std::string& name) {
  constexpr std::array kProducts = {"aten::mm", "aten::bmm", "aten::addmm", "aten::addmm_",
                                    "aten::baddbmm"};
  return std::find(kProducts.begin(), kProducts.end(), name) != kProducts.end();
}

// A picture has up to six modulation vectors.
bool has_tokens(const at::Tensor& x) {
  return x.defined() && x.is_cuda() && x.dim() >= 3 && x.size(-1) > 1 &&
         (x.dim() > 3 || x.size(1) > 6);
}

}  // namespace

CountsKernels::CountsKernels()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))) {
  counting = new Counted;
}

CountsKernels::~CountsKernels() {
  at::removeCallback(handle_);
  delete counting;
  counting = nullptr;
}

std::size_t CountsKernels::count() const { return counting->kernels.size(); }
const std::vector<CountsKernels::Started>& CountsKernels::kernels() const {
  return counting->kernels;
}

void counted::kernel(const std::string& name, const std::vector<at::Tensor>& moved) {
  if (!counting) return;
  std::int64_t bytes = 0;
  for (const auto& x : moved)
    if (has_tokens(x) && !is_product(name)) bytes += x.numel() * std::int64_t(x.element_size());
  counting->kernels.push_back({name, bytes});
}

void counted::launch() {
  if (!counting) return;
  auto& running = counting->running;
  const bool is_known = !running.empty();
  counting->kernels.push_back({is_known ? running.back().name : "braid::unknown",
                               is_known ? std::exchange(running.back().bytes, 0) : 0});
}

}  // namespace braid::fake_gpu
