// Fixed work whose instructions valgrind counts (tools/instructions): a count is the same in
// every run, however busy the machine is.
//
//   instructions
//
// Prints the name of each piece of work and computes it in braid_counted(), on one thread.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/ops.h"
#include "row_operations.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

constexpr RowShape kShape{.tokens = 8, .width = 3072};

struct Work {
  std::string name;
  std::function<Tensor()> run;
};

Work layer(const char* name, Quantize form) {
  const auto x = at::randn({24, 256}).to(at::kBFloat16);
  const auto rows = at::randn({192, 256}).to(at::kBFloat16);
  const auto weight =
      form == Quantize::kNone ? Matrix{.values_NC = rows} : quantize_rows(rows, form);
  return {name, [=] {
            Scratch scratch;
            return ops::linear(x, weight, {}, scratch);
          }};
}

Work attention() {
  const auto q = at::randn({1, 96, 2, 128}).to(at::kBFloat16).transpose(1, 2);
  return {"attention", [=] { return ops::attention(q, q, q); }};
}

std::vector<Work> all_work() {
  std::vector<Work> all = {layer("linear", Quantize::kNone), layer("linear_int8", Quantize::kInt8),
                           attention()};
  for (const auto dtype : {at::kBFloat16, at::kFloat})
    for (const auto& name : row_operation_names()) {
      const auto operation = row_operation(name, dtype, kShape);
      check(is_right(operation), name, " is far from its definition in ", dtype);
      all.push_back({name + (dtype == at::kFloat ? "_float32" : "_bfloat16"), operation.kernel});
    }
  return all;
}

}  // namespace
}  // namespace braid

// Valgrind knows it by its name.
extern "C" __attribute__((noinline, visibility("default"))) void braid_counted(
    const std::function<at::Tensor()>* run) {
  (void)(*run)();
}

int main() {
  try {
    const c10::InferenceMode no_autograd;
    at::set_num_threads(1);
    at::manual_seed(1);
    for (const auto& [name, run] : braid::all_work()) {
      (void)run();  // what happens once
      std::printf("%s\n", name.c_str());
      braid_counted(&run);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "instructions: %s\n", error.what());
    return 1;
  }
}
