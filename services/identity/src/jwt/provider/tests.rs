//! Signatures that others made, of the examples in the standards.

use jsonwebtoken::crypto::verify;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Value, json};

use super::*;

/// `{"iss":"joe", "exp":1300819380, "http://example.com/is_root":true}`, as it
/// is spaced there.
const JOE: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

fn is_right(key: Value, algorithm: Algorithm, message: &str, signature: &str) -> bool {
    install();
    let jwk: Jwk = serde_json::from_value(key).unwrap();
    let key = DecodingKey::from_jwk(&jwk).unwrap();
    verify(signature, message.as_bytes(), &key, algorithm).unwrap()
}

#[test]
fn rfc_7515_appendix_a_2_is_signed_by_its_rsa_key() {
    let key = json!({ "kty": "RSA", "e": "AQAB", "n":
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt\
         0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSX\
         ndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5\
         IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ" });
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_\
         lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArL\
         IARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ\
         1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let message = format!("eyJhbGciOiJSUzI1NiJ9.{JOE}");
    assert!(is_right(key.clone(), Algorithm::RS256, &message, signature));
    assert!(!is_right(
        key.clone(),
        Algorithm::RS384,
        &message,
        signature
    ));
    assert!(!is_right(
        key.clone(),
        Algorithm::PS256,
        &message,
        signature
    ));
    assert!(!is_right(key, Algorithm::RS256, JOE, signature));
}

#[test]
fn rfc_7515_appendix_a_3_is_signed_by_its_elliptic_key() {
    let key = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    let signature =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let message = format!("eyJhbGciOiJFUzI1NiJ9.{JOE}");
    assert!(is_right(key.clone(), Algorithm::ES256, &message, signature));
    assert!(!is_right(key, Algorithm::ES256, JOE, signature));
}

#[test]
fn rfc_8037_appendix_a_4_is_signed_by_its_edwards_key() {
    let key = json!({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    });
    let signature =
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    assert!(is_right(key.clone(), Algorithm::EdDSA, message, signature));
    assert!(!is_right(key, Algorithm::EdDSA, JOE, signature));
}
