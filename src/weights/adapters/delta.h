// What a module of an adapter adds to a weight [N C], at scale 1, in float32.
//
//   LoRA        alpha / rank * B A                  A [R C], B [N R]
//   LoHa        alpha / rank * (B1 A1) o (B2 A2)    o multiplies element by element
//   LoKr        kron(W1, W2), each whole or B A; times alpha / rank if one of them is
//   difference  as it is stored
#pragma once

#include <functional>
#include <optional>

#include "weights/adapters/adapter_file.h"
#include "weights/adapters/adapter_names.h"
#include "weights/matrix.h"

namespace braid {

// B A as they are stored, where that is all there is to a delta but for its factor.
struct StoredProduct {
  Tensor down_RC, up_NR;
};

struct Delta {
  std::int64_t rows, columns;
  double factor;  // of what is stored
  // Brings the factors to a device; the result makes rows of all columns.
  std::function<std::function<Tensor(Share rows)>(at::Device)> open;
  std::optional<StoredProduct> product = {};
};

// Nothing where the module changes no weight, but a bias, say. Throws InputError naming file and
// module: factors that do not fit each other, numbers that are not finite, one half of a pair.
std::optional<Delta> delta_of(const AdapterFile& file, const AdapterModule& module,
                              const AdapterTarget& target);

// alpha / rank of a LoRA.
double factor_of(const AdapterFile& file, const AdapterModule& module, const AdapterTarget& target);

// A tensor of a file, where it lies if it may be used there. Throws InputError unless all of it are
// finite numbers.
Tensor finite_numbers(const AdapterFile& file, const StoredTensor& stored);

}  // namespace braid
