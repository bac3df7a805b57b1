// Forms in which a matrix is stored as several tensors, such as packed codes, scales and zero
// points of groups, smoothing and low-rank factors: one line each in packed_forms.cc.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace braid {

struct Matrix;

// The tensors that a matrix may consist of, in the order in which pages have them.
enum class MatrixTensor { kValues, kScales, kZeros, kSmoothing, kDown, kUp };

// Which rows and columns of its matrix [N C] an element of a tensor is for.
struct Cell {
  std::int64_t rows = 1;      // 0: the tensor's rows are its own, such as a rank's
  std::int64_t columns = 1;   // 0: its columns are its own
  std::int64_t elements = 1;  // for these columns: the bytes of a block
};

// The values, scales and zeros of a form have elements for `columns` columns each. Smoothing [1 C]
// and the factors [R C] and [N R] of a low-rank product always lie alike.
Cell cell_of(MatrixTensor which, std::int64_t columns = 1);

// Whether tokens are multiplied with it: it has the model's dtype, and exactly the columns asked
// for.
bool multiplies_tokens(MatrixTensor which);

struct PackedTensor {
  const char* name;  // beside the layer's: "weight_zeros"
  MatrixTensor which;
  std::int64_t columns = 1;  // that an element is for; divides the form's largest such number
};

struct PackedForm {
  const char* name;                   // for people: "4 bits in groups of 64"
  std::vector<PackedTensor> tensors;  // the values, one row for each of the matrix, come first
  // The numbers [N C] in float32 that values, scales and zeros stand for: of the rows and the whole
  // groups that `matrix` holds, on its device.
  at::Tensor (*decode)(const Matrix& matrix);

  std::int64_t group() const;                          // the columns that are never divided
  const PackedTensor* find(MatrixTensor which) const;  // nullptr if it has none
};

const std::vector<PackedForm>& known_packed_forms();

}  // namespace braid
