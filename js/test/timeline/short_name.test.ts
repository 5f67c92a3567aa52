import { describe, expect, it } from "vitest";
import { shortName } from "../../src/timeline/short_name";

describe("shortName", () => {
  it.each([
    ["dense/MatMul:MatMul", "dense/MatMul:MatMul"],
    ["volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"],
    ["void tensorflow::functor::ApplyAdamKernel<float>(int, float*, float)", "ApplyAdamKernel<…>"],
    ["void (anonymous namespace)::copy<int>(int)", "copy<…>"],
    ["void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<…>, Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_product_op<float>>>>>(int)", "Eigen product_op"],
    [`${"a".repeat(100)}${"b".repeat(100)}`, `${"a".repeat(40)}…${"b".repeat(19)}`],
    ["train 3 <b>", "train 3 <b>"],
  ])("%s", (name, short) => expect(shortName(name)).toBe(short));
});
