/** A name that fits on a button: C++ kernels' are hundreds of letters that mostly begin alike. */

const FUNCTION = /^(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(\w+)<.*>/s;
/** All of Eigen's kernels are one function: what each computes is told by the first operation in its type. */
const EIGEN_OPERATION = /\b(?!TensorAssignOp|TensorCwise|scalar_constant_op)(?:Tensor\w+Op|\w+_op|(?:greater|less|equal|not_equal)\w*)\b/;
const LONGEST = 60;

export function shortName(name: string): string {
  const found = FUNCTION.exec(name);
  const computes = found?.[1] === "EigenMetaKernel" ? EIGEN_OPERATION.exec(name) : null;
  const short = computes !== null ? `Eigen ${computes[0].replace(/^(?:Tensor|scalar_)/, "")}` : found !== null ? `${found[1]}<…>` : name;
  return short.length <= LONGEST ? short : `${short.slice(0, LONGEST - 20)}…${short.slice(-19)}`;
}
