// The plan for one requested tensor, as data: rows and columns of what is stored or drawn, the form
// they get, and what adapters change. Visitors say which tensors that makes, what their bytes
// depend on, and make them.
#pragma once

#include <variant>

#include "weights/adapters/change.h"
#include "weights/paging/page_source.h"
#include "weights/sources/request.h"
#include "weights/sources/row_ranges.h"
#include "weights/sources/synthetic.h"

namespace braid {

// Values of a tensor that no file has.
struct DrawnRows {
  std::shared_ptr<const SyntheticValues> values;
  std::string path;
};

struct TensorPlan {
  std::variant<StoredRows, DrawnRows> from = {};  // all rows of the tensor
  std::vector<std::int64_t> shape = {};           // of the whole tensor
  std::int64_t stored_columns = 0;  // where it has more, they are zero; 0: all are stored
  Shard shard = {};
  at::ScalarType dtype = at::kFloat;  // that its numbers are rounded to
  // Numbers, decoded if they are coded; 8-bit codes with separate scales; or what the file has.
  enum class Take { kNumbers, kCodes, kStored } take = Take::kNumbers;
  StoredRows scales = {};                        // of kCodes
  Quantize form = Quantize::kNone;               // of the result: numbers are quantized to it
  AdapterChanges changes = {};                   // of numbers, before they are rounded
  std::shared_ptr<const LowRank> low_rank = {};  // for a matrix

  bool is_drawn() const { return std::holds_alternative<DrawnRows>(from); }
  const StoredRows& stored() const { return std::get<StoredRows>(from); }
};

// A tensor that a matrix is kept as. Extents that are not of the matrix are its own.
struct KeptTensor {
  MatrixTensor which = MatrixTensor::kValues;
  at::ScalarType dtype;
  Cell cell = {};
  std::int64_t own_rows = 0, own_columns = 0;
};

// What a plan keeps, and what is kept of a matrix of `dtype` that is quantized.
std::vector<KeptTensor> kept_tensors(const TensorPlan& plan);
std::vector<KeptTensor> kept_tensors(Quantize form, at::ScalarType dtype);
// The dtype that holds the scales of codes, of which each tensor may have its own.
at::ScalarType dtype_of_scales(const StoredRows& scales);

// The columns of a matrix that these never divide.
std::int64_t group_of(const std::vector<KeptTensor>& kept);

// Extents of each tensor for `rows` rows and some columns of a matrix of `inputs` columns; none:
// all. Values and what they are decoded with are kept in whole groups of columns.
struct KeptExtents {
  std::int64_t rows, columns;
};
std::vector<KeptExtents> extents_of(const std::vector<KeptTensor>& kept, std::int64_t inputs,
                                    std::int64_t rows, const std::vector<Share>& columns);

// Their bytes, each a multiple of `alignment`.
std::int64_t bytes_of(const std::vector<KeptTensor>& kept, std::int64_t inputs, std::int64_t rows,
                      const std::vector<Share>& columns, std::int64_t alignment = 1);

// The tensors of the plan's shard, in kept_tensors()' order.
std::vector<TensorForm> forms_of(const TensorPlan& plan);

// Describes the bytes it is made of, and how: equal descriptions yield equal tensors. Reads all of
// these bytes.
std::string identity_of(const TensorPlan& plan);

// The tensors that it is made of, in files.
std::vector<StoredTensor> stored_by(const TensorPlan& plan);
std::int64_t bytes_read_by(const TensorPlan& plan);

// Whether it keeps a packed form, or int8 codes of rotated numbers.
bool is_packed(const TensorPlan& plan);
bool is_rotated(const TensorPlan& plan);
// How the values are coded; null: as numbers, or as int8.
std::shared_ptr<const QuantFormat> coding_of(const TensorPlan& plan);

// Whether the shard lies in one file as it is wanted, and may be used there.
bool is_in_place(const TensorPlan& plan);

struct LoadedMatrix {
  Matrix matrix;
  BytesRead read;
};

// Numbers are made on the target, a file's codes in host memory. On the meta device tensors have no
// contents.
LoadedMatrix make(const TensorPlan& plan, const Target& target);

// A table for look-ups, in host memory: where it is stored, if it may be used there. For a load on
// the meta device it has no contents and takes nothing.
Tensor make_table(const TensorPlan& plan, at::Device device);

}  // namespace braid
